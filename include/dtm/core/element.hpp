#pragma once
// Element types (law L11). 16-bit types are storage: they convert to float and back, and have no
// arithmetic. "fp32" in a formula always means accumulate_t<T> = promote(T, float): double passes
// through untouched.

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "dtm/core/config.hpp"

namespace dtm {

/// bfloat16 as stored: the upper half of a float, rounded to nearest even.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  DTM_HD constexpr explicit bf16(float value) {
#if defined(__CUDA_ARCH__)  // one instruction for the twelve below
    if (!__builtin_is_constant_evaluated()) {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
      return;
    }
#endif
    auto word = __builtin_bit_cast(std::uint32_t, value);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
      bits = std::uint16_t((word >> 16) | 0x40u);  // a NaN stays one
    } else {
      word += 0x7fffu + ((word >> 16) & 1u);
      bits = std::uint16_t(word >> 16);
    }
  }
  DTM_HD constexpr explicit operator float() const {
    return __builtin_bit_cast(float, std::uint32_t(bits) << 16);
  }
  DTM_HD constexpr explicit operator double() const { return double(float(*this)); }
  friend constexpr bool operator==(bf16, bf16) = default;
};

namespace detail {

template <class T>
struct accumulate {
  using type = T;
};
template <>
struct accumulate<bf16> {
  using type = float;
};

}  // namespace detail

/// The type in which sums and non-linear functions of T are computed.
template <class T>
using accumulate_t = typename detail::accumulate<T>::type;

/// Elements of activations and parameters.
template <class T>
concept floating_element =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, bf16>;

/// Elements of features.
template <class T>
concept element = floating_element<T> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t>;

template <class T>
constexpr char const* element_name() {
  if constexpr (std::is_same_v<T, float>)
    return "fp32";
  else if constexpr (std::is_same_v<T, double>)
    return "fp64";
  else if constexpr (std::is_same_v<T, bf16>)
    return "bf16";
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return "int32";
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return "int64";
  else
    return "uint8";
}

}  // namespace dtm
