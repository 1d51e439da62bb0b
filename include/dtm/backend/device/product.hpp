#pragma once
// Matrix products by the library's own kernels on any device that launches them. The emulator
// multiplies with these; a device with a library of its own for products may still choose them by
// name.

#include <cstdint>
#include <type_traits>

#include "dtm/backend/device/for_each.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/product_mma.hpp"

namespace dtm::local {

namespace detail {

/// A few tiles with a long sum leave most of a device idle: then ranges of k are summed apart. By
/// the shape alone (law L13).
inline kernels::product_shape cut_product(gemm_shape const& s) {
  constexpr std::int64_t enough_blocks = 256, least_k = 512;
  kernels::product_shape shape{s.batch,      s.m, s.n, s.k, s.left_transposed, s.right_transposed,
                               s.accumulate, 1,   s.k};
  std::int64_t const chunks_by_blocks = enough_blocks / shape.tiles(), chunks_by_k = s.k / least_k;
  std::int64_t const chunks = chunks_by_blocks < chunks_by_k ? chunks_by_blocks : chunks_by_k;
  if (chunks > 1) {
    shape.k_each = kernels::ceil_divide(kernels::ceil_divide(s.k, chunks), 32) * 32;
    shape.chunks = kernels::ceil_divide(s.k, shape.k_each);
  }
  return shape;
}

template <class Context, class T, class Result>
void launch_product(Context& ctx, kernels::product_shape const& shape, T const* left,
                    T const* right, Result* result) {
  if constexpr (std::is_same_v<T, bf16>) {
    constexpr int length = kernels::mma_operand::length;
    auto const rows_are_aligned = [](T const* p, std::int64_t pitch) {
      return pitch % length == 0 && kernels::are_aligned<length>(p);
    };
    ctx.launch(shape.blocks(),
               kernels::product_mma<Result>{
                   shape, left, right, result,
                   rows_are_aligned(left, shape.left_transposed ? shape.m : shape.k),
                   rows_are_aligned(right, shape.right_transposed ? shape.k : shape.n)});
  } else {
    ctx.launch(shape.blocks(), kernels::product_tiles<T>{shape, left, right, result});
  }
}

}  // namespace detail

/// local::gemm by kernels/product.hpp and product_mma.hpp.
template <class Context, class T, class Result>
void device_product(Context& ctx, gemm_shape const& s, T const* left, T const* right,
                    Result* result) {
  using A = accumulate_t<T>;
  static_assert(std::is_same_v<Result, T> || std::is_same_v<Result, A>,
                "dtm gemm: the result is of the operands' type or of its accumulation type");
  std::int64_t const count = s.batch * s.m * s.n;
  if (count == 0 || (s.k == 0 && s.accumulate)) return;
  auto shape = detail::cut_product(s);
  if (shape.chunks == 1) return detail::launch_product(ctx, shape, left, right, result);
  scratch<A> terms(ctx.memory(), shape.chunks * count);
  shape.accumulate = false;
  detail::launch_product(ctx, shape, left, right, terms.data());
  for_each(
      ctx, count,
      kernels::finish_product<Result>{terms.data(), shape.chunks, count, s.accumulate, result});
}

template <>
struct gemm_impl<emulated> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& shape, T const* left, T const* right,
                  Result* result) {
    device_product(ctx, shape, left, right, result);
  }
};

}  // namespace dtm::local
