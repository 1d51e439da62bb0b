#pragma once
// Batched matrix products in tiles of 64 x 64, row-major, as local::gemm_shape says. A block forms
// a tile of the result over a range of k; terms are added in the order of k (law L13). What lies
// beyond the matrices counts as 0, so that any m, n, k will do.
//
// product_tiles: fp32 and fp64, both operands' tiles in shared memory, 8 x 8 results a thread.
// product_mma.hpp: bf16 on the matrix units.
//
// Per tile and step of k: reads 2 x 64 elements an inner index, 2 x 64 x 64 flops: 32 flops an
// element read. fp32 and fp64 are bound by arithmetic, bf16 by shared memory.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/block.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// Sizes of a batch of products, and how the work is cut: `chunks` ranges of k, `k_each` long. With
/// more than one chunk the result is [chunk, batch, m, n], to be added up by finish_product.
struct product_shape {
  static constexpr std::int64_t side = 64;
  std::int64_t batch, m, n, k;
  bool left_transposed, right_transposed, accumulate;
  std::int64_t chunks, k_each;

  std::int64_t tiles() const { return batch * ceil_divide(m, side) * ceil_divide(n, side); }
  std::int64_t blocks() const { return chunks * tiles(); }
};

/// Which tile a block has.
struct product_place {
  std::int64_t chunk, batch, row, column, k_begin, k_end;
  DTM_HD product_place(product_shape const& s, std::int64_t index) {
    constexpr std::int64_t side = product_shape::side;
    std::int64_t const across = (s.n + side - 1) / side, down = (s.m + side - 1) / side;
    column = index % across * side;
    row = index / across % down * side;
    std::int64_t const matrix = index / (across * down);
    batch = matrix % s.batch;
    chunk = matrix / s.batch;
    k_begin = chunk * s.k_each;
    k_end = k_begin + s.k_each < s.k ? k_begin + s.k_each : s.k;
  }
};

/// result (+)= total, of the storage type.
template <class Result, class A>
DTM_HD void put_result(Result* result, A total, bool accumulate) {
  *result = Result(accumulate ? A(*result) + total : total);
}

template <class T>
struct product_tiles {
  static constexpr int threads = 64;
  static constexpr int side = int(product_shape::side), inner = 16, each = 8, pitch = side + 1;
  struct left_tag {};
  struct right_tag {};
  product_shape shape;
  T const* left;
  T const* right;
  T* result;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& of_left = block.template shared<T, inner * pitch, left_tag>();    // [k, m]
    auto&& of_right = block.template shared<T, inner * pitch, right_tag>();  // [k, n]
    product_place const at(shape, block.index());
    T const* const l = left + at.batch * shape.m * shape.k;
    T const* const r = right + at.batch * shape.k * shape.n;
    int const across = block.thread() % each, down = block.thread() / each;
    T total[each][each];
    DTM_UNROLL
    for (int i = 0; i < each; ++i) {
      DTM_UNROLL
      for (int j = 0; j < each; ++j) total[i][j] = T(0);
    }
    for (std::int64_t k = at.k_begin; k < at.k_end; k += inner) {
      fill(block, of_left, l, at.row, shape.m, k, at.k_end, shape.left_transposed, shape.m);
      fill(block, of_right, r, at.column, shape.n, k, at.k_end, !shape.right_transposed, shape.n);
      block.sync();
      for (int step = 0; step < inner; ++step) {
        T a[each], b[each];
        DTM_UNROLL
        for (int i = 0; i < each; ++i) a[i] = of_left[step * pitch + down + i * each];
        DTM_UNROLL
        for (int j = 0; j < each; ++j) b[j] = of_right[step * pitch + across + j * each];
        DTM_UNROLL
        for (int i = 0; i < each; ++i) {
          DTM_UNROLL
          for (int j = 0; j < each; ++j) total[i][j] += a[i] * b[j];
        }
      }
      block.sync();
    }
    T* const out = result + (at.chunk * shape.batch + at.batch) * shape.m * shape.n;
    DTM_UNROLL
    for (int i = 0; i < each; ++i) {
      DTM_UNROLL
      for (int j = 0; j < each; ++j) {
        std::int64_t const row = at.row + down + i * each, column = at.column + across + j * each;
        if (row < shape.m && column < shape.n)
          put_result(out + row * shape.n + column, total[i][j], shape.accumulate);
      }
    }
  }

 private:
  // held[k, outer] of a matrix stored [k, outer] or [outer, k]; neighbours of memory go to
  // neighbouring threads either way.
  template <class Block, class Held>
  DTM_HD void fill(Block& block, Held&& held, T const* matrix, std::int64_t outer_begin,
                   std::int64_t outer_end, std::int64_t k_begin, std::int64_t k_end,
                   bool k_is_major, std::int64_t outer_count) const {
    for (int e = block.thread(); e < inner * side; e += threads) {
      int const o = k_is_major ? e % side : e / inner, q = k_is_major ? e / side : e % inner;
      std::int64_t const outer = outer_begin + o, k = k_begin + q;
      bool const exists = outer < outer_end && k < k_end;
      held[q * pitch + o] =
          exists ? matrix[k_is_major ? k * outer_count + outer : outer * shape.k + k] : T(0);
    }
  }
};

/// result[i] (+)= the chunks' terms, in their order. Reads `chunks`, writes 1; memory.
template <class Result>
struct finish_product {
  using A = accumulate_t<Result>;
  A const* term;  // [chunks, count]
  std::int64_t chunks, count;
  bool accumulate;
  Result* result;
  DTM_HD void operator()(std::int64_t i) const {
    A total = A(0);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) total += term[chunk * count + i];
    put_result(result + i, total, accumulate);
  }
};

}  // namespace dtm::kernels
