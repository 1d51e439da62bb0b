#pragma once
// Between channels-last tiles [batch, position, channels] and channel-first ones [batch, channels,
// position]. On a device both go through square tiles in shared memory, so that reads and writes
// are of neighbours; reads 1, writes 1; memory.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// y[b, c, p] = x[b, p, first + c]
template <class T>
struct channels_to_front {
  T const* x;
  std::int64_t positions, all_channels, first, channels;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const p = i % positions, ch = i / positions % channels,
                       b = i / (positions * channels);
    y[i] = x[(b * positions + p) * all_channels + first + ch];
  }
};

/// x[b, p, first + c] = y[b, c, p]
template <class T>
struct channels_to_back {
  T const* y;
  std::int64_t positions, all_channels, first, channels;
  T* x;
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const p = i % positions, ch = i / positions % channels,
                       b = i / (positions * channels);
    x[(b * positions + p) * all_channels + first + ch] = y[i];
  }
};

/// A 32 x 32 tile of a batch of matrices, by 32 x 8 threads, four elements each. Rows of shared
/// memory are an odd number of words apart: neither direction meets a bank twice.
template <class T>
struct square_tile {
  static constexpr int side = 32, threads = 256, rows_at_once = threads / side;
  static constexpr int pitch = side + (sizeof(T) == 2 ? 2 : 1);
  static constexpr int elements = side * pitch;

  /// Blocks of [batch, rows, columns].
  static std::int64_t count(std::int64_t batch, std::int64_t rows, std::int64_t columns) {
    return batch * ceil_divide(rows, side) * ceil_divide(columns, side);
  }
  static std::int64_t blocks(std::int64_t tiles) {
    return tiles < 16 * most_blocks ? tiles : 16 * most_blocks;
  }

  std::int64_t batch, row, column;  // of the first element
  DTM_HD square_tile(std::int64_t index, std::int64_t rows, std::int64_t columns) {
    std::int64_t const across = (columns + side - 1) / side, down = (rows + side - 1) / side;
    column = index % across * side;
    row = index / across % down * side;
    batch = index / (across * down);
  }
};

/// to[b, column, row] = from[b, row, column]; a matrix may be part of wider rows: its rows begin
/// `from_pitch` or `to_pitch` elements apart, matrices are whole in both.
template <class T>
struct transpose_tiles {
  static constexpr int threads = square_tile<T>::threads;
  using tile_type = square_tile<T>;
  T const* from;
  T* to;
  std::int64_t rows, columns, from_pitch, to_pitch, tiles;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& held = block.template shared<T, tile_type::elements, transpose_tiles>();
    int const across = block.thread() % tile_type::side, down = block.thread() / tile_type::side;
    for (std::int64_t index = block.index(); index < tiles; index += block.grid()) {
      tile_type const tile(index, rows, columns);
      T const* const source = from + tile.batch * rows * from_pitch;
      T* const target = to + tile.batch * columns * to_pitch;
      for (int r = down; r < tile_type::side; r += tile_type::rows_at_once)
        if (tile.row + r < rows && tile.column + across < columns)
          held[r * tile_type::pitch + across] =
              source[(tile.row + r) * from_pitch + tile.column + across];
      block.sync();
      for (int c = down; c < tile_type::side; c += tile_type::rows_at_once)
        if (tile.column + c < columns && tile.row + across < rows)
          target[(tile.column + c) * to_pitch + tile.row + across] =
              held[across * tile_type::pitch + c];
      block.sync();
    }
  }
};

template <class T>
struct device_form<channels_to_front<T>> {
  static launch_form<transpose_tiles<T>> of(channels_to_front<T> const& k, std::int64_t count) {
    if (count == 0) return {0, {}};
    std::int64_t const batch = count / (k.positions * k.channels);
    std::int64_t const tiles = square_tile<T>::count(batch, k.positions, k.channels);
    return {square_tile<T>::blocks(tiles),
            {k.x + k.first, k.y, k.positions, k.channels, k.all_channels, k.positions, tiles}};
  }
};

template <class T>
struct device_form<channels_to_back<T>> {
  static launch_form<transpose_tiles<T>> of(channels_to_back<T> const& k, std::int64_t count) {
    if (count == 0) return {0, {}};
    std::int64_t const batch = count / (k.positions * k.channels);
    std::int64_t const tiles = square_tile<T>::count(batch, k.channels, k.positions);
    return {square_tile<T>::blocks(tiles),
            {k.y, k.x + k.first, k.channels, k.positions, k.positions, k.all_channels, tiles}};
  }
};

}  // namespace dtm::kernels
