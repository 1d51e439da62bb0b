#pragma once
// Kernels of the tests, each with the operation it is about. Compiled for the emulator and by nvcc.

#include <cstdint>

#include "dtm/kernels/block.hpp"

namespace dtm::testing {

// [transpose]
/// y[j, i] = x[i, j] of a square matrix, in tiles of 32 x 32: a block a tile.
struct transpose {
  static constexpr int threads = 256;  // 8 rows of a tile at a time
  static constexpr int side = 32;
  struct tile_tag {};
  float const* x;
  float* y;
  std::int64_t n;  // a multiple of side

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& tile = block.template shared<float, side*(side + 1), tile_tag>();
    std::int64_t const row = block.index() / (n / side) * side;
    std::int64_t const column = block.index() % (n / side) * side;
    for (int i = block.warp(); i < side; i += block.size() / side)
      tile[i * (side + 1) + block.lane()] = x[(row + i) * n + column + block.lane()];
    block.sync();
    for (int i = block.warp(); i < side; i += block.size() / side)
      y[(column + i) * n + row + block.lane()] = tile[block.lane() * (side + 1) + i];
  }
};
// [transpose]

/// Index functions of every thread: six numbers each.
struct where_am_i {
  static constexpr int threads = 64;
  std::int64_t* y;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    std::int64_t* const mine = y + block.first() * 6;
    mine[0] = block.index();
    mine[1] = block.grid();
    mine[2] = block.thread();
    mine[3] = block.size();
    mine[4] = block.warp() * 100 + block.lane();
    mine[5] = block.stride();
  }
};

/// The sum of a chain: thread t adds its number after t barriers.
struct chain {
  static constexpr int threads = 96;
  struct total_tag {};
  unsigned* y;  // wraps around
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& total = block.template shared<unsigned, 1, total_tag>();
    if (block.thread() == 0) total[0] = 0u;
    for (int turn = 0; turn < block.size(); ++turn) {
      block.sync();
      if (block.thread() == turn) total[0] = total[0] * 3u + unsigned(turn);
    }
    block.sync();
    y[block.first()] = total[0];
  }
};

/// any() of a question that one thread answers with yes, of none, of all.
struct ask {
  static constexpr int threads = 64;
  int* y;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    int bits = 0;
    if (block.any(block.thread() == 37)) bits += 1;
    if (block.any(false)) bits += 2;
    if (block.any(true)) bits += 4;
    y[block.first()] = bits;
  }
};

template <class T>
struct shuffles {
  static constexpr int threads = 64;
  T* y;  // three a thread
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    T const mine = T(float(block.thread() + 1));
    y[block.first() * 3] = block.shuffle_xor(mine, 5);
    y[block.first() * 3 + 1] = block.shuffle_down(mine, 3);
    y[block.first() * 3 + 2] = block.shuffle_xor(block.shuffle_down(mine, 31), 0);
  }
};

/// Neighbouring lanes pass values on through shared memory; only their warp has to wait.
struct rotate_warp {
  static constexpr int threads = 64;
  struct place_tag {};
  int* y;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& place = block.template shared<int, threads, place_tag>();
    int value = block.thread();
    for (int turn = 0; turn < 3; ++turn) {
      place[block.thread()] = value;
      block.sync_warp();
      value = place[block.warp() * 32 + (block.lane() + 1) % 32];
      block.sync_warp();
    }
    y[block.first()] = value;
  }
};

template <class T>
struct reductions {
  static constexpr int threads = 128;
  T const* x;
  T* y;  // four a thread
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    T const mine = x[block.first()];
    T* const out = y + block.first() * 4;
    out[0] = kernels::warp_sum(block, mine);
    out[1] = kernels::block_sum(block, mine);
    out[2] = kernels::warp_max(block, mine);
    out[3] = kernels::block_max(block, mine);
  }
};

/// A histogram in shared memory, added to one in device memory.
template <class Count>
struct histogram {
  static constexpr int threads = 64;
  static constexpr int bins = 7;
  struct bin_tag {};
  int const* x;
  Count* y;
  std::int64_t n;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& count = block.template shared<Count, bins, bin_tag>();
    if (block.thread() < bins) count[block.thread()] = 0;
    block.sync();
    for (std::int64_t i = block.first(); i < n; i += block.stride())
      block.atomic_add(&count[x[i]], 1);
    block.sync();
    if (block.thread() < bins) block.atomic_add(y + block.thread(), count[block.thread()]);
  }
};

/// y = reversed fours of x, through shared memory.
template <class T, int N>
struct vectors {
  static constexpr int threads = 32;
  struct tag {};
  T const* x;
  T* y;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& held = block.template shared<T, threads * N, tag>();
    int const here = block.thread() * N, there = (threads - 1 - block.thread()) * N;
    block.store(&held[here], block.template load<N>(x + block.index() * threads * N + here));
    block.sync();
    auto value = block.template load<N>(&held[there]);
    for (int i = 0; i < N / 2; ++i) {
      T const first = value[i];
      value[i] = value[N - 1 - i];
      value[N - 1 - i] = first;
    }
    block.store(y + block.index() * threads * N + here, value);
  }
};

/// Sums of rows of 4 * threads floats, the next row on its way while this one is added.
struct pipeline {
  static constexpr int threads = 32;
  struct stage_tag {};
  float const* x;
  float* y;
  int rows;
  template <class Block>
  DTM_HD void fetch(Block& block, int row) const {
    auto&& stage = block.template shared<float, 2 * 4 * threads, stage_tag>();
    int const at = block.thread() * 4;
    block.template copy_async<4>(stage, row % 2 * 4 * threads + at, x + row * 4 * threads + at);
  }
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& stage = block.template shared<float, 2 * 4 * threads, stage_tag>();
    float total = 0;
    fetch(block, 0);
    block.commit();
    for (int row = 0; row < rows; ++row) {
      if (row + 1 < rows) fetch(block, row + 1);
      block.commit();
      block.template wait<1>();
      block.sync();
      for (int i = 0; i < 4; ++i)  // what another thread has fetched
        total += stage[row % 2 * 4 * threads + (4 * block.thread() + i + 64) % (4 * threads)];
      block.sync();
    }
    y[block.thread()] = total;
  }
};

/// d = a b + d of one tile, row-major.
struct multiply_tile {
  static constexpr int threads = 64;  // two warps, a tile each
  bf16 const* a;
  bf16 const* b;
  float* d;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    using tile = kernels::mma_tile;
    int const lane = block.lane();
    tile::left x;
    tile::right y;
    tile::sum z;
    for (int i = 0; i < 8; ++i)
      x[i] = a[block.warp() * 256 + tile::a_row(lane, i) * 16 + tile::a_inner(lane, i)];
    for (int i = 0; i < 4; ++i)
      y[i] = b[block.warp() * 128 + tile::b_inner(lane, i) * 8 + tile::b_column(lane, i)];
    for (int i = 0; i < 4; ++i)
      z.element[i] = d[block.warp() * 128 + tile::d_row(lane, i) * 8 + tile::d_column(lane, i)];
    block.mma(z, x, y);
    for (int i = 0; i < 4; ++i)
      d[block.warp() * 128 + tile::d_row(lane, i) * 8 + tile::d_column(lane, i)] = z.element[i];
  }
};

template <class T>
struct functions {
  static constexpr int threads = 32;
  T const* x;
  T* y;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    T const value = x[block.thread()];
    y[block.thread() * 3] = block.exp(value);
    y[block.thread() * 3 + 1] = block.log(value);
    y[block.thread() * 3 + 2] = block.rsqrt(value);
  }
};

/// Types that convert to arithmetic ones only when asked, in shared memory.
struct shared_bf16 {
  static constexpr int threads = 32;
  struct tag {};
  struct pair_tag {};
  using pair = kernels::vector<bf16, 2>;
  float* y;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& held = block.template shared<bf16, threads, tag>();
    auto&& pairs = block.template shared<pair, threads, pair_tag>();
    held[block.thread()] = bf16(float(block.thread()));
    block.sync();
    held[block.thread()] = held[block.thread()];
    pairs[block.thread()] = pair{{bf16(1.0f), held[block.thread()]}};
    block.sync();
    pair const neighbour = pairs[(block.thread() + 1) % threads];
    y[block.thread()] =
        float(held[block.thread()]) + float(neighbour[1]) + float(pairs[block.thread()][0]);
  }
};

/// Twice every element; no barriers.
struct twice {
  static constexpr int threads = 256;
  float const* x;
  float* y;
  std::int64_t n;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    for (std::int64_t i = block.first(); i < n; i += block.stride()) y[i] = 2 * x[i];
  }
};

}  // namespace dtm::testing
