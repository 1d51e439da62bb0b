#pragma once
// Between channels-last tiles [batch, position, channels] and channel-first ones [batch, channels,
// position]: a batch of matrices is transposed. Kernels that do so, and perhaps compute on the way,
// are function objects over an index of [batch, column, row]:
//
//   element                     what moves
//   matrix()                    rows and columns, as they are read
//   take(batch, row, column)    reads, and what it computes first
//   put(batch, row, column, v)  what it computes then, and writes
//
// On a device they go through square tiles in shared memory, so that reads and writes are of
// neighbours.

#include <concepts>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

struct matrix_extents {
  std::int64_t rows, columns;
};

template <class Kernel>
concept transposes = requires(Kernel const& kernel) {
  typename Kernel::element;
  { kernel.matrix() } -> std::same_as<matrix_extents>;
};

/// One element of a transposing kernel.
template <transposes Kernel>
DTM_HD void transpose_one(Kernel const& kernel, std::int64_t i) {
  auto const matrix = kernel.matrix();
  std::int64_t const row = i % matrix.rows, column = i / matrix.rows % matrix.columns,
                     batch = i / (matrix.rows * matrix.columns);
  kernel.put(batch, row, column, kernel.take(batch, row, column));
}

/// y[b, c, r] = x[b, r, c]. Reads 1, writes 1; memory.
template <class T>
struct transpose_matrices {
  using element = T;
  T const* x;
  std::int64_t rows, columns;
  T* y;
  DTM_HD matrix_extents matrix() const { return {rows, columns}; }
  DTM_HD T take(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return x[(batch * rows + row) * columns + column];
  }
  DTM_HD void put(std::int64_t batch, std::int64_t row, std::int64_t column, T value) const {
    y[(batch * columns + column) * rows + row] = value;
  }
  DTM_HD void operator()(std::int64_t i) const { transpose_one(*this, i); }
};

/// A 32 x 32 tile of a batch of matrices, by 32 x 8 threads, four elements each. Rows of shared
/// memory are an odd number of words apart: neither direction meets a bank twice.
template <class T>
struct square_tile {
  static constexpr int side = 32, threads = 256, rows_at_once = threads / side;
  static constexpr int pitch = side + (sizeof(T) == 2 ? 2 : 1);
  static constexpr int elements = side * pitch;

  std::int64_t batch, row, column;  // of the first element
  DTM_HD square_tile(std::int64_t index, matrix_extents const& matrix) {
    std::int64_t const across = (matrix.columns + side - 1) / side,
                       down = (matrix.rows + side - 1) / side;
    column = index % across * side;
    row = index / across % down * side;
    batch = index / (across * down);
  }
};

/// A transposing kernel by tiles.
template <transposes Kernel>
struct through_tiles {
  using tile_type = square_tile<typename Kernel::element>;
  static constexpr int threads = tile_type::threads;
  static constexpr int resident = sizeof(typename Kernel::element) == 8 ? 5 : 8;
  Kernel kernel;
  std::int64_t tiles;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& held =
        block.template shared<typename Kernel::element, tile_type::elements, through_tiles>();
    int const across = block.thread() % tile_type::side, down = block.thread() / tile_type::side;
    auto const matrix = kernel.matrix();
    for (std::int64_t index = block.index(); index < tiles; index += block.grid()) {
      tile_type const tile(index, matrix);
      for (int r = down; r < tile_type::side; r += tile_type::rows_at_once)
        if (tile.row + r < matrix.rows && tile.column + across < matrix.columns)
          held[r * tile_type::pitch + across] =
              kernel.take(tile.batch, tile.row + r, tile.column + across);
      block.sync();
      for (int c = down; c < tile_type::side; c += tile_type::rows_at_once)
        if (tile.column + c < matrix.columns && tile.row + across < matrix.rows)
          kernel.put(tile.batch, tile.row + across, tile.column + c,
                     held[across * tile_type::pitch + c]);
      block.sync();
    }
  }
};

template <transposes Kernel>
struct device_form<Kernel> {
  static launch_form<through_tiles<Kernel>> of(Kernel const& kernel, std::int64_t count) {
    if (count == 0) return {0, {}};
    constexpr std::int64_t side = through_tiles<Kernel>::tile_type::side;
    auto const matrix = kernel.matrix();
    std::int64_t const batch = count / (matrix.rows * matrix.columns);
    std::int64_t const tiles =
        batch * ceil_divide(matrix.rows, side) * ceil_divide(matrix.columns, side);
    return {tiles < 16 * most_blocks ? tiles : 16 * most_blocks, {kernel, tiles}};
  }
};

}  // namespace dtm::kernels
