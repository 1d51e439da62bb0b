#pragma once
// What stands between the doubled projections of triangle multiplication and its product a channel,
// in one pass instead of two: gate, mask, and the way to channel planes; and its adjoint. Function
// objects over an index; devices go through square tiles in shared memory, as channels.hpp.
//
//   y = x * sigmoid(g) * mask [b, p, 2C];  a = y[..., :C] and b = y[..., C:] as planes [b, C, p]

#include <cstdint>

#include "dtm/kernels/channels.hpp"
#include "dtm/kernels/elementwise.hpp"

namespace dtm::kernels {

/// Over an index of [b, 2C, p]. Reads 2, writes 1; 13 flops with one exponential; memory. Masked
/// gate and two permutations apart would read 4 and write 2.
template <class T>
struct masked_gate_to_planes {
  T const* x;
  T const* g;
  T const* mask;
  std::int64_t positions, channels;  // of one half
  T* a;
  T* b;

  /// Where row `ch` of the doubled channels lies in a batch's planes.
  DTM_HD T* plane(std::int64_t batch, std::int64_t ch) const {
    return (ch < channels ? a : b) + (batch * channels + ch % channels) * positions;
  }
  DTM_HD T value(std::int64_t batch, std::int64_t p, std::int64_t ch) const {
    std::int64_t const position = batch * positions + p, at = position * 2 * channels + ch;
    return masked_gate<T>::value(x[at], g[at], mask[position]);
  }
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const p = i % positions, row = i / positions, ch = row % (2 * channels),
                       batch = row / (2 * channels);
    plane(batch, ch)[p] = value(batch, p, ch);
  }
};

/// Its adjoint, no gradient to the mask, over an index of [b, p, 2C]. dx may be x's storage and dg
/// g's. Reads 3, writes 2; 17 flops with one exponential; memory. Apart: reads 5, writes 4.
template <class T>
struct masked_gate_from_planes_backward {
  T const* da;
  T const* db;
  T const* x;
  T const* g;
  T const* mask;
  std::int64_t positions, channels;  // of one half
  T* dx;
  T* dg;

  DTM_HD T const* plane(std::int64_t batch, std::int64_t ch) const {
    return (ch < channels ? da : db) + (batch * channels + ch % channels) * positions;
  }
  DTM_HD void put(std::int64_t batch, std::int64_t p, std::int64_t ch, T dy) const {
    std::int64_t const position = batch * positions + p, at = position * 2 * channels + ch;
    auto const both = masked_gate_backward<T>::value(dy, x[at], g[at], mask[position]);
    dx[at] = both.first;
    dg[at] = both.second;
  }
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const ch = i % (2 * channels), position = i / (2 * channels),
                       p = position % positions, batch = position / positions;
    put(batch, p, ch, plane(batch, ch)[p]);
  }
};

/// masked_gate_to_planes by tiles of [position, channel].
template <class T>
struct masked_gate_to_planes_tiles {
  using tile_type = square_tile<T>;
  static constexpr int threads = tile_type::threads;
  masked_gate_to_planes<T> of;
  std::int64_t tiles;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& held = block.template shared<T, tile_type::elements, masked_gate_to_planes_tiles>();
    int const across = block.thread() % tile_type::side, down = block.thread() / tile_type::side;
    for (std::int64_t index = block.index(); index < tiles; index += block.grid()) {
      tile_type const tile(index, of.positions, 2 * of.channels);
      for (int r = down; r < tile_type::side; r += tile_type::rows_at_once)
        if (tile.row + r < of.positions && tile.column + across < 2 * of.channels)
          held[r * tile_type::pitch + across] =
              of.value(tile.batch, tile.row + r, tile.column + across);
      block.sync();
      for (int c = down; c < tile_type::side; c += tile_type::rows_at_once)
        if (tile.column + c < 2 * of.channels && tile.row + across < of.positions)
          of.plane(tile.batch, tile.column + c)[tile.row + across] =
              held[across * tile_type::pitch + c];
      block.sync();
    }
  }
};

/// masked_gate_from_planes_backward by tiles of [channel, position].
template <class T>
struct masked_gate_from_planes_tiles {
  using tile_type = square_tile<T>;
  static constexpr int threads = tile_type::threads;
  masked_gate_from_planes_backward<T> of;
  std::int64_t tiles;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& held = block.template shared<T, tile_type::elements, masked_gate_from_planes_tiles>();
    int const across = block.thread() % tile_type::side, down = block.thread() / tile_type::side;
    for (std::int64_t index = block.index(); index < tiles; index += block.grid()) {
      tile_type const tile(index, 2 * of.channels, of.positions);
      for (int r = down; r < tile_type::side; r += tile_type::rows_at_once)
        if (tile.row + r < 2 * of.channels && tile.column + across < of.positions)
          held[r * tile_type::pitch + across] =
              of.plane(tile.batch, tile.row + r)[tile.column + across];
      block.sync();
      for (int c = down; c < tile_type::side; c += tile_type::rows_at_once)
        if (tile.column + c < of.positions && tile.row + across < 2 * of.channels)
          of.put(tile.batch, tile.column + c, tile.row + across,
                 held[across * tile_type::pitch + c]);
      block.sync();
    }
  }
};

template <class T>
struct device_form<masked_gate_to_planes<T>> {
  static launch_form<masked_gate_to_planes_tiles<T>> of(masked_gate_to_planes<T> const& k,
                                                        std::int64_t count) {
    if (count == 0) return {0, {}};
    std::int64_t const batch = count / (k.positions * 2 * k.channels);
    std::int64_t const tiles = square_tile<T>::count(batch, k.positions, 2 * k.channels);
    return {square_tile<T>::blocks(tiles), {k, tiles}};
  }
};
template <class T>
struct device_form<masked_gate_from_planes_backward<T>> {
  static launch_form<masked_gate_from_planes_tiles<T>> of(
      masked_gate_from_planes_backward<T> const& k, std::int64_t count) {
    if (count == 0) return {0, {}};
    std::int64_t const batch = count / (k.positions * 2 * k.channels);
    std::int64_t const tiles = square_tile<T>::count(batch, 2 * k.channels, k.positions);
    return {square_tile<T>::blocks(tiles), {k, tiles}};
  }
};

}  // namespace dtm::kernels
