#pragma once
// Kernels that move elements between places of a tensor, or spread and sum them along a dimension:
// function objects over an index, as in elementwise.hpp.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// Copy with permuted dimensions: y is contiguous with `extent`; stride[d] is x's stride of y's
/// dimension d. Reads 1, writes 1; memory, and where the last dimension moves up to eight times
/// its traffic, for neighbours of y lie apart in x.
template <class T, int Rank>
struct permute {
  T const* x;
  T* y;
  std::int64_t extent[Rank];
  std::int64_t stride[Rank];
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t rest = i, offset = 0;
    for (int d = Rank - 1; d >= 0; --d) {
      offset += rest % extent[d] * stride[d];
      rest /= extent[d];
    }
    y[i] = x[offset];
  }
};

/// z[b, i, j, c] = row[b, i, c] + column[b, j, c]. Writes 1 (rows and columns come from cache); 1
/// flop; memory.
template <class T>
struct outer_sum {
  static constexpr int neighbours = vector_length<T>;
  T const* row;
  T const* column;
  std::int64_t rows, columns, channels;
  T* z;
  DTM_HD static T value(T row, T column) {
    return T(accumulate_t<T>(row) + accumulate_t<T>(column));
  }
  // where the two operands of an index lie
  DTM_HD void place(std::int64_t index, std::int64_t& in_row, std::int64_t& in_column) const {
    std::int64_t const ch = index % channels, pair = index / channels, j = pair % columns,
                       row_of_pairs = pair / columns, b = row_of_pairs / rows;
    in_row = row_of_pairs * channels + ch;
    in_column = (b * columns + j) * channels + ch;
  }
  DTM_HD void operator()(std::int64_t index) const {
    std::int64_t in_row, in_column;
    place(index, in_row, in_column);
    z[index] = value(row[in_row], column[in_column]);
  }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t index) const {
    std::int64_t in_row, in_column;
    place(index, in_row, in_column);
    auto const left = block.template load<neighbours>(row + in_row);
    auto const right = block.template load<neighbours>(column + in_column);
    vector<T, neighbours> out;
    for (int n = 0; n < neighbours; ++n) out[n] = value(left[n], right[n]);
    block.store(z + index, out);
  }
  bool may_vector() const {
    return channels % neighbours == 0 && are_aligned<neighbours>(row, column, z);
  }
};

/// z[b, i, j] = row[b, i] * column[b, j]. Writes 1; 1 flop; memory.
template <class T>
struct outer_product {
  T const* row;
  T const* column;
  std::int64_t rows, columns;
  T* z;
  DTM_HD void operator()(std::int64_t index) const {
    using A = accumulate_t<T>;
    std::int64_t const j = index % columns, i = index / columns % rows,
                       b = index / (columns * rows);
    z[index] = T(A(row[b * rows + i]) * A(column[b * columns + j]));
  }
};

/// y[outer, inner] = sum over the middle dimension, in index order. Reads `middle`, writes 1;
/// `middle` flops; memory where inner is at least a warp.
template <class T>
struct sum_middle {
  T const* x;
  std::int64_t middle, inner;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    T const* const first = x + i / inner * middle * inner + i % inner;
    A total = A(0);
    for (std::int64_t m = 0; m < middle; ++m) total += A(first[m * inner]);
    y[i] = T(total);
  }
};

/// result = the sum of `count` numbers, each divided by `divisor`, in their order: one index. For a
/// handful of numbers.
template <class A>
struct sum_in_order {
  A const* x;
  std::int64_t count;
  A divisor;
  A* result;
  DTM_HD void operator()(std::int64_t) const {
    A total = A(0);
    for (std::int64_t i = 0; i < count; ++i) total += x[i] / divisor;
    *result = total;
  }
};

}  // namespace dtm::kernels
