#pragma once
// The adjoint of attention of rows on a device. Probabilities are made again from the statistics; what
// is summed over different things has kernels of its own, so that every sum is of one block and in one
// order, and nothing is added atomically (law L13):
//
//   attention_query_constants   1 / sum and do . o of every query
//   attention_backward_queries  dq: a block has 64 queries of a head and row, and runs over the keys
//   attention_backward_keys     dk, dv: a block has 64 keys of a head and row, and runs over the queries
//   attention_backward_bias     dbias: a block has 64 queries and up to 64 keys of a head, and runs over
//                               the rows
//
// That is nine products and three exponentials a score instead of five and one. One kernel for dq and
// dbias would have to read and write dbias in memory for every row, 8 bytes a score, where recomputing
// reads 4 for bf16: q, do, k and v of 64 positions for 64 x 64 scores; the bias stays in registers for
// all rows. Reads of the second cache a score for bf16: 4 bytes (queries), 4 (keys), 4 (bias), beside
// 192, 256 and 128 flops at width 32, an exponential and some 15 instructions, which bound it. fp32 and
// fp64 are bound by arithmetic. Planned, not measured.

#include <cstdint>
#include <type_traits>

#include "dtm/kernels/attention.hpp"

namespace dtm::kernels {

/// Of a query: 1 / sum, and do . o. Reads 2 width, writes 2; 2 width flops; memory.
template <class T>
struct attention_query_constants {
  using A = accumulate_t<T>;
  local::attention_shape shape;
  T const* o;
  T const* d_o;
  A const* sum;
  A* share;
  A* dl;
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const query = i % shape.queries, head = i / shape.queries % shape.heads,
                       sequence = i / (shape.queries * shape.heads);
    std::int64_t const first =
        ((sequence * shape.queries + query) * shape.heads + head) * shape.width;
    A total = A(0);
    for (std::int64_t c = 0; c < shape.width; ++c) total += A(d_o[first + c]) * A(o[first + c]);
    share[i] = A(1) / sum[i];
    dl[i] = total;
  }
};

/// What the three kernels read. max, share and dl are [batch, rows, heads, queries].
template <class T>
struct attention_adjoint {
  using A = accumulate_t<T>;
  local::attention_input<T> in;
  A const* max;
  A const* share;
  A const* dl;
  T const* d_o;
  attention_alignment aligned;

  DTM_HD head_positions<T> queries(T const* of, attention_place const& place) const {
    return detail::positions_of(in.shape, of + place.queries, in.shape.queries, aligned.channels);
  }
  DTM_HD head_positions<T> keys(T const* of, attention_place const& place) const {
    return detail::positions_of(in.shape, of + place.keys, in.shape.keys, aligned.channels);
  }
  DTM_HD T const* bias(std::int64_t batch, std::int64_t head) const {
    return in.bias + (batch * in.shape.heads + head) * in.shape.queries * in.shape.keys;
  }
};

namespace detail {

/// What is the same for all scores of a query.
template <class A>
struct query_constants {
  A max, share, dl;
  bool exists;
  template <class T>
  DTM_HD static query_constants of(attention_adjoint<T> const& arg, attention_place const& place,
                                   std::int64_t query) {
    if (query >= arg.in.shape.queries) return {A(0), A(0), A(0), false};
    std::int64_t const at = place.statistics + query;
    return {arg.max[at], arg.share[at], arg.dl[at], true};
  }
};

/// A score's product becomes its probability, the probability's cotangent the score's.
template <class Block, class A>
DTM_HD void adjoint_of_score(Block& block, A scale, A mask, A bias, query_constants<A> const& query,
                             bool exists, A& p, A& d) {
  A const score = (scale * p + mask) + bias;
  p = exists ? block.exp(score - query.max) * query.share : A(0);
  d = p * (d - query.dl);
}

/// Blocks of other positions are as long as registers allow.
template <class T>
inline constexpr int adjoint_others = sizeof(T) == 8 ? 16 : 32;

}  // namespace detail

/// A warp's queries of a row, and the cotangents of their scores.
template <class T, int Width, int Keys>
struct adjoint_queries {
  using A = accumulate_t<T>;
  using tiles = attention_tiles<T, Width, Keys>;
  struct key_tag {};
  struct value_tag {};
  typename tiles::owned q, d_o;
  detail::query_constants<A> constants[2];

  template <class Block>
  DTM_HD void load(Block& block, attention_adjoint<T> const& arg, attention_place const& place,
                   std::int64_t first) {
    q.load(block, arg.queries(arg.in.q, place), first);
    d_o.load(block, arg.queries(arg.d_o, place), first);
    tile_place const at(block, first);
    DTM_UNROLL
    for (int half = 0; half < 2; ++half)
      constants[half] = detail::query_constants<A>::of(arg, place, at.row[half]);
  }

  /// Keys and values of a block in shared memory; a barrier before and after.
  template <bool Products, class Block>
  DTM_HD static void fill(Block& block, attention_adjoint<T> const& arg,
                          attention_place const& place, std::int64_t first_key) {
    block.sync();
    tiles::template fill<key_tag, true, Products>(block, arg.keys(arg.in.k, place), first_key);
    tiles::template fill<value_tag, true, false>(block, arg.keys(arg.in.v, place), first_key);
    block.sync();
  }

  /// ds of the keys that were filled in; `mask` is of this lane's first one, and `left` keys are left
  /// from there.
  template <class Block>
  DTM_HD void cotangents(Block& block, attention_adjoint<T> const& arg, A const* mask, int left,
                         bias_tile<T, tiles::across> const& biases,
                         typename tiles::sum (&ds)[tiles::across]) const {
    typename tiles::sum p[tiles::across];
    tiles::template scores<key_tag>(block, q, p);
    tiles::template scores<value_tag>(block, d_o, ds);
    DTM_UNROLL
    for (int t = 0; t < tiles::across; ++t) {
      DTM_UNROLL
      for (int e = 0; e < 4; ++e) {
        int const k = t * mma_tile::columns + e % 2;
        bool const exists = k < left && constants[e / 2].exists;
        detail::adjoint_of_score(block, arg.in.scale, exists ? mask[k] : A(0),
                                 A(biases.of[t][e / 2][e % 2]), constants[e / 2], exists,
                                 p[t].element[e], ds[t].element[e]);
      }
    }
  }
};

template <class T, class Result, int Width>
struct attention_backward_queries {
  static constexpr int threads = attention_threads, queries = attention_owned;
  static constexpr int keys = detail::adjoint_others<T>;
  using A = accumulate_t<T>;
  using own = adjoint_queries<T, Width, keys>;
  using tiles = typename own::tiles;
  attention_adjoint<T> arg;
  Result* dq;
  bool add;

  std::int64_t blocks() const {
    auto const& s = arg.in.shape;
    return s.batch * s.heads * s.rows * ceil_divide(s.queries, queries);
  }
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto const& s = arg.in.shape;
    std::int64_t const across = ceil_divide(s.queries, queries),
                       sequence_of_head = block.index() / across;
    std::int64_t const first = block.index() % across * queries,
                       sequence = sequence_of_head % (s.batch * s.rows),
                       head = sequence_of_head / (s.batch * s.rows);
    attention_place const place(s, sequence, head);
    T const* const bias = arg.bias(sequence / s.rows, head);
    tile_place const at(block, first);
    own mine;
    mine.load(block, arg, place, first);
    typename tiles::sum result[tiles::of_channels];
    set_zero_sums(result);
    DTM_KEEP_LOOP
    for (std::int64_t key = 0; key < s.keys; key += keys) {
      bias_tile<T, tiles::across> biases;
      biases.load(block, s, bias, at, key, arg.aligned.biases);
      own::template fill<true>(block, arg, place, key);
      if (at.first >= s.queries) continue;  // a warp without queries only helps to fill
      typename tiles::sum ds[tiles::across];
      mine.cotangents(block, arg, arg.in.mask + place.masks + key + at.column,
                      detail::left_of(s.keys, key + at.column), biases, ds);
      auto const w = tiles::as_weights(block, ds);
      tiles::template add_products<typename own::key_tag>(block, w, int(s.width), result);
    }
    A const factor[2] = {arg.in.scale, arg.in.scale};
    detail::put_rows(block, s, dq + place.queries, s.queries, at, arg.aligned.channels, factor,
                     result, add);
  }
};

template <class T, class Result, int Width>
struct attention_backward_keys {
  static constexpr int threads = attention_threads, keys = attention_owned;
  static constexpr int resident = sizeof(T) == 8 ? 1 : 0;  // doubles spill for a block more
  static constexpr int queries = detail::adjoint_others<T>;
  using A = accumulate_t<T>;
  using tiles = attention_tiles<T, Width, queries>;
  struct query_tag {};
  struct upstream_tag {};
  attention_adjoint<T> arg;
  Result* dk;
  Result* dv;
  bool add;

  std::int64_t blocks() const {
    auto const& s = arg.in.shape;
    return s.batch * s.heads * s.rows * ceil_divide(s.keys, keys);
  }
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto const& s = arg.in.shape;
    std::int64_t const across = ceil_divide(s.keys, keys),
                       sequence_of_head = block.index() / across;
    std::int64_t const first = block.index() % across * keys,
                       sequence = sequence_of_head % (s.batch * s.rows),
                       head = sequence_of_head / (s.batch * s.rows);
    attention_place const place(s, sequence, head);
    T const* const bias = arg.bias(sequence / s.rows, head);
    tile_place const at(block, first);
    typename tiles::owned k, v;
    k.load(block, arg.keys(arg.in.k, place), first);
    v.load(block, arg.keys(arg.in.v, place), first);
    A mask[2];
    DTM_UNROLL
    for (int half = 0; half < 2; ++half)
      mask[half] = at.row[half] < s.keys ? arg.in.mask[place.masks + at.row[half]] : A(0);
    typename tiles::sum of_keys[tiles::of_channels], of_values[tiles::of_channels];
    set_zero_sums(of_keys);
    set_zero_sums(of_values);
    DTM_KEEP_LOOP
    for (std::int64_t query = 0; query < s.queries; query += queries) {
      block.sync();
      tiles::template fill<query_tag, true, true>(block, arg.queries(arg.in.q, place), query);
      tiles::template fill<upstream_tag, true, true>(block, arg.queries(arg.d_o, place), query);
      block.sync();
      if (at.first >= s.keys) continue;
      typename tiles::sum p[tiles::across], ds[tiles::across];
      tiles::template scores<query_tag>(block, k, p);
      tiles::template scores<upstream_tag>(block, v, ds);
      adjoint(block, place, bias, at, mask, query + at.column, p, ds);
      tiles::template add_products<upstream_tag>(block, tiles::as_weights(block, p), int(s.width),
                                                 of_values);
      tiles::template add_products<query_tag>(block, tiles::as_weights(block, ds), int(s.width),
                                              of_keys);
    }
    A const scale[2] = {arg.in.scale, arg.in.scale}, one[2] = {A(1), A(1)};
    detail::put_rows(block, s, dk + place.keys, s.keys, at, arg.aligned.channels, scale, of_keys,
                     add);
    detail::put_rows(block, s, dv + place.keys, s.keys, at, arg.aligned.channels, one, of_values,
                     add);
  }

 private:
  // rows of the tile are keys, columns are queries, of which this lane's first one is `query`
  template <class Block>
  DTM_HD void adjoint(Block& block, attention_place const& place, T const* bias,
                      tile_place const& at, A const (&mask)[2], std::int64_t query,
                      typename tiles::sum (&p)[tiles::across],
                      typename tiles::sum (&ds)[tiles::across]) const {
    auto const& s = arg.in.shape;
    DTM_UNROLL
    for (int t = 0; t < tiles::across; ++t) {
      DTM_UNROLL
      for (int n = 0; n < 2; ++n) {
        std::int64_t const j = query + t * mma_tile::columns + n;
        auto const constants = detail::query_constants<A>::of(arg, place, j);
        DTM_UNROLL
        for (int half = 0; half < 2; ++half) {
          bool const exists = constants.exists && at.row[half] < s.keys;
          A const term = exists ? A(bias[j * s.keys + at.row[half]]) : A(0);
          int const e = 2 * half + n;
          detail::adjoint_of_score(block, arg.in.scale, mask[half], term, constants, exists,
                                   p[t].element[e], ds[t].element[e]);
        }
      }
    }
  }
};

/// dbias += ds, rows in their order.
template <class T, int Width>
struct attention_backward_bias {
  static constexpr int threads = attention_threads, queries = attention_owned;
  static constexpr int keys =
      std::is_same_v<T, bf16> && Width <= 32 ? 64 : detail::adjoint_others<T>;
  using A = accumulate_t<T>;
  using own = adjoint_queries<T, Width, keys>;
  using tiles = typename own::tiles;
  attention_adjoint<T> arg;
  A* dbias;

  std::int64_t blocks() const {
    auto const& s = arg.in.shape;
    return s.batch * s.heads * ceil_divide(s.queries, queries) * ceil_divide(s.keys, keys);
  }
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto const& s = arg.in.shape;
    std::int64_t const across = ceil_divide(s.keys, keys), down = ceil_divide(s.queries, queries),
                       plane = block.index() / (across * down);
    std::int64_t const key = block.index() % across * keys,
                       first = block.index() / across % down * queries, head = plane % s.heads,
                       batch = plane / s.heads;
    tile_place const at(block, first);
    bias_tile<T, tiles::across> biases;
    biases.load(block, s, arg.bias(batch, head), at, key, arg.aligned.biases);
    typename tiles::sum total[tiles::across];
    set_zero_sums(total);
    DTM_KEEP_LOOP
    for (std::int64_t row = 0; row < s.rows; ++row) {
      attention_place const place(s, batch * s.rows + row, head);
      own mine;
      mine.load(block, arg, place, first);
      own::template fill<false>(block, arg, place, key);
      if (at.first >= s.queries) continue;
      typename tiles::sum ds[tiles::across];
      mine.cotangents(block, arg, arg.in.mask + place.masks + key + at.column,
                      detail::left_of(s.keys, key + at.column), biases, ds);
      DTM_UNROLL
      for (int t = 0; t < tiles::across; ++t) {
        DTM_UNROLL
        for (int e = 0; e < 4; ++e) total[t].element[e] += ds[t].element[e];
      }
    }
    A* const plane_of_bias = dbias + plane * s.queries * s.keys;
    DTM_UNROLL
    for (int t = 0; t < tiles::across; ++t) {
      DTM_UNROLL
      for (int e = 0; e < 4; ++e) {
        std::int64_t const k = key + t * mma_tile::columns + at.column + e % 2;
        if (at.row[e / 2] < s.queries && k < s.keys)
          plane_of_bias[at.row[e / 2] * s.keys + k] += total[t].element[e];
      }
    }
  }
};

}  // namespace dtm::kernels
