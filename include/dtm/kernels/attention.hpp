#pragma once
// Attention of rows (backend/fused_attention.hpp) on a device, forward: the softmax of a block of
// queries is carried from one block of keys to the next, no score leaves its registers. A block has 64
// queries of a head in `rows` neighbouring rows, a warp 16 of them, which share what is read of the
// bias. Sums over keys have the order of the keys, whatever stands beside them (law L13).
//
// Per score at width 32: 128 flops, one exponential, some 12 instructions beside them. Read of the
// second cache: 2 bytes of bias for `rows` rows, 2 x 64 of k and v for 64 queries, 3 bytes in all for
// bf16. Matrix units would be done after a half of the time that exponentials and the instructions
// around them take: these bound bf16; fp32 and fp64 are bound by arithmetic. Planned, not measured.

#include <cstdint>
#include <type_traits>

#include "dtm/backend/fused_attention.hpp"
#include "dtm/kernels/attention_tiles.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// What a launch knows of its pointers.
struct attention_alignment {
  bool channels;  // eight neighbouring channels of every position may be moved at once
  bool biases;    // two neighbouring keys of the bias may be read at once
};

/// Where the elements of a head in a row are.
struct attention_place {
  std::int64_t step;               // from a position to the next
  std::int64_t queries, keys;      // offsets of q and o, of k and v
  std::int64_t statistics, masks;  // of [batch, rows, heads, queries] and [batch, rows, keys]
  DTM_HD attention_place(local::attention_shape const& s, std::int64_t sequence, std::int64_t head)
      : step(s.heads * s.width),
        queries(sequence * s.queries * step + head * s.width),
        keys(sequence * s.keys * step + head * s.width),
        statistics((sequence * s.heads + head) * s.queries),
        masks(sequence * s.keys) {}
};

namespace detail {

template <class T>
DTM_HD head_positions<T> positions_of(local::attention_shape const& s, T const* first,
                                      std::int64_t count, bool aligned) {
  return {first, s.heads * s.width, count, int(s.width), aligned};
}

/// How many there are from an index on: enough for any tile.
DTM_HD constexpr int left_of(std::int64_t count, std::int64_t from) {
  constexpr std::int64_t enough = 64;
  return int(count - from < enough ? count - from : enough);
}

/// Two elements of a row at once where they may be, else those that exist.
template <class T, class Block>
DTM_HD vector<T, 2> two_of(Block& block, T const* row, std::int64_t at, std::int64_t count,
                           bool together) {
  if (together && at + 1 < count) return block.template load<2>(row + at);
  vector<T, 2> result{{T{}, T{}}};
  if (at < count) result[0] = row[at];
  if (at + 1 < count) result[1] = row[at + 1];
  return result;
}

/// result of a position and two channels = (what is there +) factor times two sums.
template <class Result, class A, class Block>
DTM_HD void put_two(Block& block, Result* position, int channel, int width, bool together, A first,
                    A second, bool add) {
  if (channel >= width) return;
  Result* const to = position + channel;
  if (together) {
    vector<Result, 2> two{{Result{}, Result{}}};
    if (add) two = block.template load<2>(to);
    two[0] = Result(add ? A(two[0]) + first : first);
    two[1] = Result(add ? A(two[1]) + second : second);
    block.store(to, two);
    return;
  }
  to[0] = Result(add ? A(to[0]) + first : first);
  if (channel + 1 < width) to[1] = Result(add ? A(to[1]) + second : second);
}

/// A warp's sums, 16 positions x channels, times a factor of each row, to positions of a head.
template <class Result, class A, class Sum, int Count, class Block>
DTM_HD void put_rows(Block& block, local::attention_shape const& s, Result* first,
                     std::int64_t count, tile_place const& at, bool together, A const (&factor)[2],
                     Sum const (&sums)[Count], bool add) {
  DTM_UNROLL
  for (int half = 0; half < 2; ++half) {
    if (at.row[half] >= count) continue;
    Result* const position = first + at.row[half] * (s.heads * s.width);
    DTM_UNROLL
    for (int t = 0; t < Count; ++t)
      put_two(block, position, t * mma_tile::columns + at.column, int(s.width), together,
              A(factor[half] * sums[t].element[2 * half]),
              A(factor[half] * sums[t].element[2 * half + 1]), add);
  }
}

/// Of the four lanes that have the columns of a row.
template <class Block, class A>
DTM_HD A row_max(Block& block, A value) {
  value = larger_value<A>::apply(value, block.shuffle_xor(value, 1));
  return larger_value<A>::apply(value, block.shuffle_xor(value, 2));
}
template <class Block, class A>
DTM_HD A row_sum(Block& block, A value) {
  value += block.shuffle_xor(value, 1);
  return value + block.shuffle_xor(value, 2);
}

}  // namespace detail

/// The bias of a tile of scores.
template <class T, int Across>
struct bias_tile {
  vector<T, 2> of[Across][2];
  template <class Block>
  DTM_HD void load(Block& block, local::attention_shape const& s, T const* bias,
                   tile_place const& at, std::int64_t first_key, bool together) {
    DTM_UNROLL
    for (int t = 0; t < Across; ++t) {
      DTM_UNROLL
      for (int half = 0; half < 2; ++half)
        of[t][half] = detail::two_of(block, bias + at.row[half] * s.keys,
                                     first_key + t * mma_tile::columns + at.column,
                                     at.row[half] < s.queries ? s.keys : 0, together);
    }
  }
};

/// Heads of up to Width channels. Result is T or accumulate_t<T>.
template <class T, class Result, int Width>
struct attention_forward {
  static constexpr int threads = attention_threads, queries = attention_owned;
  static constexpr bool on_matrix_units = std::is_same_v<T, bf16>;
  static constexpr int keys = on_matrix_units ? 64 : sizeof(T) == 4 ? 32 : 16;
  static constexpr int rows = on_matrix_units && Width <= 32 ? 2 : 1;
  using A = accumulate_t<T>;
  using tiles = attention_tiles<T, Width, keys>;
  struct key_tag {};
  struct value_tag {};

  local::attention_rows<T, Result> arg;
  attention_alignment aligned;

  std::int64_t blocks() const {
    auto const& s = arg.in.shape;
    return s.batch * s.heads * ceil_divide(s.rows, rows) * ceil_divide(s.queries, queries);
  }

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto const& s = arg.in.shape;
    std::int64_t const across = ceil_divide(s.queries, queries), down = ceil_divide(s.rows, rows),
                       group = block.index() / across;
    std::int64_t const first = block.index() % across * queries, row = group % down * rows,
                       head = group / down % s.heads, batch = group / (down * s.heads);
    tile_place const at(block, first);
    softmax state[rows];
    DTM_UNROLL
    for (int r = 0; r < rows; ++r)
      if (row + r < s.rows)
        state[r].begin(block, *this, attention_place(s, batch * s.rows + row + r, head), first);
    T const* const bias = arg.in.bias + (batch * s.heads + head) * s.queries * s.keys;
    DTM_KEEP_LOOP
    for (std::int64_t key = 0; key < s.keys; key += keys) {
      bias_tile<T, tiles::across> biases;
      biases.load(block, s, bias, at, key, aligned.biases);
      DTM_UNROLL
      for (int r = 0; r < rows; ++r) {
        if (row + r >= s.rows) continue;
        attention_place const place(s, batch * s.rows + row + r, head);
        block.sync();
        tiles::template fill<key_tag, true, false>(
            block, detail::positions_of(s, arg.in.k + place.keys, s.keys, aligned.channels), key);
        tiles::template fill<value_tag, false, true>(
            block, detail::positions_of(s, arg.in.v + place.keys, s.keys, aligned.channels), key);
        block.sync();
        if (at.first < s.queries)  // a warp without queries only helps to fill
          state[r].attend(block, *this, arg.in.mask + place.masks + key + at.column,
                          detail::left_of(s.keys, key + at.column), biases);
      }
    }
    DTM_UNROLL
    for (int r = 0; r < rows; ++r)
      if (row + r < s.rows)
        state[r].finish(block, *this, attention_place(s, batch * s.rows + row + r, head), first);
  }

 private:
  /// The softmax of a row's queries so far. o is not divided by the sum yet, and the sums of the four
  /// lanes that share a query are its parts.
  struct softmax {
    typename tiles::owned q;
    typename tiles::sum o[tiles::of_channels];
    A max[2], sum[2];

    template <class Block>
    DTM_HD void begin(Block& block, attention_forward const& kernel, attention_place const& place,
                      std::int64_t first) {
      auto const& s = kernel.arg.in.shape;
      q.load(block,
             detail::positions_of(s, kernel.arg.in.q + place.queries, s.queries,
                                  kernel.aligned.channels),
             first);
      set_zero_sums(o);
      tile_place const at(block, first);
      DTM_UNROLL
      for (int half = 0; half < 2; ++half) {
        max[half] = detail::larger_value<A>::neutral();
        sum[half] = A(0);
        if (!kernel.arg.continues || at.row[half] >= s.queries) continue;
        std::int64_t const query = place.statistics + at.row[half];
        A const before = kernel.arg.statistics.sum[query];
        max[half] = kernel.arg.statistics.max[query];
        if (at.column == 0) sum[half] = before;
        Result const* const of_query = kernel.arg.o + place.queries + at.row[half] * place.step;
        DTM_UNROLL
        for (int t = 0; t < tiles::of_channels; ++t) {
          auto const two = detail::two_of(block, of_query, t * mma_tile::columns + at.column,
                                          s.width, kernel.aligned.channels);
          o[t].element[2 * half] = before * A(two[0]);
          o[t].element[2 * half + 1] = before * A(two[1]);
        }
      }
    }

    /// A block of keys; `mask` is of this lane's first one, and `left` keys are left from there.
    template <class Block>
    DTM_HD void attend(Block& block, attention_forward const& kernel, A const* mask, int left,
                       bias_tile<T, tiles::across> const& biases) {
      auto const& s = kernel.arg.in.shape;
      typename tiles::sum score[tiles::across];
      tiles::template scores<key_tag>(block, q, score);
      A top[2] = {max[0], max[1]};
      DTM_UNROLL
      for (int t = 0; t < tiles::across; ++t) {
        DTM_UNROLL
        for (int e = 0; e < 4; ++e) {
          int const k = t * mma_tile::columns + e % 2;
          A& value = score[t].element[e];
          value = k < left ? (kernel.arg.in.scale * value + mask[k]) + A(biases.of[t][e / 2][e % 2])
                           : detail::larger_value<A>::neutral();
          top[e / 2] = detail::larger_value<A>::apply(top[e / 2], value);
        }
      }
      DTM_UNROLL
      for (int half = 0; half < 2; ++half) {
        top[half] = detail::row_max(block, top[half]);
        A const before = block.exp(max[half] - top[half]);
        max[half] = top[half];
        sum[half] *= before;
        DTM_UNROLL
        for (int t = 0; t < tiles::of_channels; ++t) {
          o[t].element[2 * half] *= before;
          o[t].element[2 * half + 1] *= before;
        }
      }
      DTM_UNROLL
      for (int t = 0; t < tiles::across; ++t) {
        DTM_UNROLL
        for (int e = 0; e < 4; ++e) {
          A& value = score[t].element[e];
          value = block.exp(value - max[e / 2]);
          sum[e / 2] += value;
        }
      }
      auto const p = tiles::as_weights(block, score);
      tiles::template add_products<value_tag>(block, p, int(s.width), o);
    }

    template <class Block>
    DTM_HD void finish(Block& block, attention_forward const& kernel, attention_place const& place,
                       std::int64_t first) {
      auto const& s = kernel.arg.in.shape;
      tile_place const at(block, first);
      A share[2];
      DTM_UNROLL
      for (int half = 0; half < 2; ++half) {
        A const total = detail::row_sum(block, sum[half]);
        share[half] = A(1) / total;
        if (at.column > 0 || at.row[half] >= s.queries) continue;
        kernel.arg.statistics.max[place.statistics + at.row[half]] = max[half];
        kernel.arg.statistics.sum[place.statistics + at.row[half]] = total;
      }
      detail::put_rows(block, s, kernel.arg.o + place.queries, s.queries, at,
                       kernel.aligned.channels, share, o, false);
    }
  };
};

}  // namespace dtm::kernels
