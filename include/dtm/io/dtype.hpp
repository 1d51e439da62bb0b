#pragma once
// The element types of a safetensors file that this library reads and writes, the C++ types that
// store them, and the conversions that lose nothing. Everything here is pure; no file is touched.

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "dtm/core/element.hpp"

namespace dtm::io {

static_assert(std::endian::native == std::endian::little,
              "safetensors data is little-endian, and is copied as it is");

/// Element type in a file. The order of the enumerators is the order of `dtype_names`.
enum class dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

inline constexpr std::array<std::string_view, 10> dtype_names = {
    "F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"};

/// Types which the format defines and this library refuses, by name, because no tensor of ours can
/// hold them.
inline constexpr std::array<std::string_view, 11> refused_dtype_names = {
    "U16",     "U32",     "U64",     "C64", "F8_E4M3", "F8_E5M2",
    "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4",  "C128"};

/// Name of the type as the header of a file spells it.
constexpr std::string_view name_of(dtype type) {
  return dtype_names[static_cast<std::size_t>(type)];
}

/// Bytes of one element.
constexpr std::int64_t size_of(dtype type) {
  constexpr std::array<std::int8_t, 10> sizes = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};
  return sizes[static_cast<std::size_t>(type)];
}

/// The type of that name, or nothing.
constexpr std::optional<dtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < dtype_names.size(); ++i)
    if (dtype_names[i] == name) return static_cast<dtype>(i);
  return std::nullopt;
}

/// `F64, F32, ...` for messages.
inline std::string list_of_dtypes() {
  std::string text;
  for (std::string_view name : dtype_names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// Which file type a C++ type is written as and read from. Specialise it for a storage type of your
/// own, such as a half precision number, by inheriting from `file_type<dtype::f16>`.
template <class T>
struct stored_as;
template <dtype Type>
struct file_type {
  static constexpr dtype value = Type;
};
template <>
struct stored_as<double> : file_type<dtype::f64> {};
template <>
struct stored_as<float> : file_type<dtype::f32> {};
template <>
struct stored_as<bf16> : file_type<dtype::bf16> {};
template <>
struct stored_as<std::int64_t> : file_type<dtype::i64> {};
template <>
struct stored_as<std::int32_t> : file_type<dtype::i32> {};
template <>
struct stored_as<std::int16_t> : file_type<dtype::i16> {};
template <>
struct stored_as<std::int8_t> : file_type<dtype::i8> {};
template <>
struct stored_as<std::uint8_t> : file_type<dtype::u8> {};

template <class T>
concept storable = std::is_trivially_copyable_v<T> && requires {
  stored_as<T>::value;
} && sizeof(T) == static_cast<std::size_t>(size_of(stored_as<T>::value));

/// Value of an IEEE half precision bit pattern; exact.
constexpr float half_to_float(std::uint16_t bits) {
  std::uint32_t const sign = std::uint32_t(bits & 0x8000u) << 16;
  std::uint32_t const exponent = (bits >> 10) & 0x1fu;
  std::uint32_t const fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  float const magnitude = static_cast<float>(fraction) * 0x1p-24f;  // denormal or zero
  return sign ? -magnitude : magnitude;
}

/// True when every value of `type` has an equal value in T, so that widening loses nothing.
template <class T>
constexpr bool widens_to(dtype type) {
  using limits = std::numeric_limits<T>;
  constexpr bool floating = std::is_floating_point_v<T>;
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (type) {
    case dtype::f64:
      return floating && limits::digits >= 53;
    case dtype::f32:
    case dtype::f16:
    case dtype::bf16:
      return floating && limits::digits >= 24;
    case dtype::i64:
      return is_signed && limits::digits >= 63;
    case dtype::i32:
      return is_signed && limits::digits >= 31;
    case dtype::i16:
      return is_signed && limits::digits >= 15;
    case dtype::i8:
      return is_signed && limits::digits >= 7;
    case dtype::u8:
      return limits::digits >= 8;
    case dtype::boolean:
      return true;
  }
  return false;
}

}  // namespace dtm::io
