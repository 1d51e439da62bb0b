#pragma once
// Matrix products on the host by Eigen. 16-bit operands are widened first: Eigen's own bfloat16
// product accumulates in bfloat16 (1024 ones sum to 256).
//
// Eigen costs a compiler ten seconds. A program of several units defines DTM_SEPARATE_PRODUCTS, and
// in one of its units, with the optimisation that it wants for them, instantiates what
// backend/host/products.hpp names; without the macro every unit has its own.

#include <cstdint>
#include <type_traits>

#include "dtm/backend/local.hpp"
#include "dtm/core/device.hpp"
#include "dtm/core/scratch.hpp"

namespace dtm::local {

namespace detail {

/// One product of float or double, in backend/host/products.hpp.
template <class T>
void gemm_one(gemm_shape const& shape, T const* left, T const* right, T* result);

template <class From, class To>
void widen(From const* from, std::int64_t count, To* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = To(from[i]);
}

}  // namespace detail

template <>
struct gemm_impl<host> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& shape, T const* left, T const* right,
                  Result* result) {
    using A = accumulate_t<T>;
    static_assert(std::is_same_v<Result, T> || std::is_same_v<Result, A>,
                  "dtm gemm: the result is of the operands' type or of its accumulation type");
    std::int64_t const left_size = shape.m * shape.k, right_size = shape.k * shape.n,
                       result_size = shape.m * shape.n;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      T const* const l = left + b * left_size;
      T const* const r = right + b * right_size;
      Result* const out = result + b * result_size;
      if constexpr (std::is_same_v<T, A>) {
        detail::gemm_one(shape, l, r, out);
      } else {
        scratch<A> wide_left(ctx.memory(), left_size), wide_right(ctx.memory(), right_size);
        detail::widen(l, left_size, wide_left.data());
        detail::widen(r, right_size, wide_right.data());
        if constexpr (std::is_same_v<Result, A>) {
          detail::gemm_one(shape, wide_left.data(), wide_right.data(), out);
        } else {
          scratch<A> wide_out(ctx.memory(), result_size);
          if (shape.accumulate) detail::widen(out, result_size, wide_out.data());
          detail::gemm_one(shape, wide_left.data(), wide_right.data(), wide_out.data());
          for (std::int64_t i = 0; i < result_size; ++i) out[i] = T(wide_out.data()[i]);
        }
      }
    }
  }
};

}  // namespace dtm::local

#ifndef DTM_SEPARATE_PRODUCTS
#include "dtm/backend/host/products.hpp"
#endif
