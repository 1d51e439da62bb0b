#pragma once
// Sums over the rows of a matrix, one a column, in a fixed order: a block sums 32 columns over a
// chunk of rows, every warp every eighth row, the warps' sums are added in their order; a second
// launch adds the chunks in theirs.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/block.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// How rows are cut into chunks: by their number alone, so that the order of a sum is a matter of
/// the shape.
struct row_chunks {
  std::int64_t count, rows_each;
  static row_chunks of(std::int64_t rows, std::int64_t least_rows, std::int64_t most_chunks) {
    std::int64_t const wanted = ceil_divide(rows, most_chunks);
    std::int64_t const each = wanted > least_rows ? wanted : least_rows;
    return {ceil_divide(rows, each), each};
  }
};

/// Threads of a block that sums columns.
inline constexpr int column_threads = 256;

/// The sum of `mine` over the warps of a block for each lane, in the order of the warps; valid in
/// warp 0. A barrier stands before and after the exchange.
template <class Tag, class Block, class A>
DTM_HD A sum_over_warps(Block& block, A mine) {
  auto&& of_thread = block.template shared<A, column_threads, Tag>();
  block.sync();
  of_thread[block.thread()] = mine;
  block.sync();
  A total = A(0);
  if (block.warp() == 0)
    for (int warp = 0; warp < block.size() / warp_size; ++warp)
      total += A(of_thread[warp * warp_size + block.lane()]);
  return total;
}

/// result[chunk, j] = sum of x[row, j] over the rows of the chunk, or added to it. Reads 1 an
/// element; 1 flop; memory.
template <class T>
struct column_sums {
  static constexpr int threads = column_threads;
  using A = accumulate_t<T>;
  T const* x;
  std::int64_t rows, columns, rows_each;
  A* result;
  bool adds;

  std::int64_t blocks() const {
    return ceil_divide(rows, rows_each) * ceil_divide(columns, warp_size);
  }
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    std::int64_t const across = (columns + warp_size - 1) / warp_size;
    std::int64_t const column = block.index() % across * warp_size + block.lane();
    std::int64_t const chunk = block.index() / across;
    std::int64_t const end = (chunk + 1) * rows_each < rows ? (chunk + 1) * rows_each : rows;
    A mine = A(0);
    if (column < columns) {
      for (std::int64_t row = chunk * rows_each + block.warp(); row < end;
           row += block.size() / warp_size)
        mine += A(x[row * columns + column]);
    }
    A const total = sum_over_warps<column_sums>(block, mine);
    if (block.warp() > 0 || column >= columns) return;
    A* const out = result + chunk * columns + column;
    *out = adds ? *out + total : total;
  }
};

}  // namespace dtm::kernels
