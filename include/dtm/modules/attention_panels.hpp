#pragma once
// The bias of triangle attention in panels: that of some queries of all rows.

#include <cstdint>

#include "dtm/core/scratch.hpp"
#include "dtm/ops/attended_rows.hpp"
#include "dtm/ops/position_runs.hpp"

namespace dtm::detail {

/// Every rank has the bias of `rows` rows; it comes as that of `length` rows of each rank at a time, so
/// many that a panel is at most 1 / share of a pair tile, or as that of one.
struct bias_panels {
  std::int64_t ranks, heads, rows, count = 1, length;

  bias_panels(std::int64_t tokens, std::int64_t of_ranks, std::int64_t channels,
              std::int64_t of_heads, int share)
      : ranks(of_ranks), heads(of_heads), rows(tokens / of_ranks), length(rows) {
    std::int64_t const most = rows * channels / (share * heads * ranks);
    if (most >= rows) return;
    length = most > 1 ? most : 1;
    count = (rows + length - 1) / length;
    length = (rows + count - 1) / count;
  }
  std::int64_t tokens() const { return ranks * rows; }
  std::int64_t first(std::int64_t panel) const { return panel * length; }
  std::int64_t here(std::int64_t panel) const {
    std::int64_t const left = rows - first(panel);
    return left < 0 ? 0 : left < length ? left : length;
  }
  /// A panel's rows of the bias, which are its queries of every sequence.
  position_runs queries(std::int64_t panel) const {
    return {ranks, rows, first(panel), here(panel)};
  }
  /// Those of them that are this rank's.
  position_runs own_rows(std::int64_t panel) const { return {1, rows, first(panel), here(panel)}; }
  local::attention_shape shape(std::int64_t batch, std::int64_t queries, std::int64_t width) const {
    return {batch, rows, queries, tokens(), heads, width};
  }
};

/// Some queries of a block of rows: x and its statistics.
template <class T>
struct queries_of_rows {
  using A = accumulate_t<T>;
  position_runs runs;
  std::int64_t sequences, first;  // of all positions
  scratch<T> x;
  scratch<A> mean, rstd;
  local::normalised_rows<T> in, keys;

  template <class Context>
  queries_of_rows(Context& ctx, position_runs const& which, local::normalised_rows<T> const& all,
                  local::detail::block_of_rows const& block)
      : runs(which),
        sequences(block.rows),
        first(block.first * which.count * which.step),
        x(ctx.memory(), count() * all.channels),
        mean(ctx.memory(), count()),
        rstd(ctx.memory(), count()),
        in{x.data(), 1, count(), all.channels, all.norm, {mean.data(), rstd.data()}},
        keys{all.x + first * all.channels,
             1,
             sequences * runs.count * runs.step,
             all.channels,
             all.norm,
             {all.statistics.mean + first, all.statistics.rstd + first}} {
    take(ctx, all.channels, all.x, x.data());
    take(ctx, 1, all.statistics.mean, mean.data());
    take(ctx, 1, all.statistics.rstd, rstd.data());
  }
  std::int64_t count() const { return sequences * runs.size(); }

  /// Between data of all positions, `width` elements each, and that of these.
  template <class Context, class E>
  void take(Context& ctx, std::int64_t width, E const* all, E* some) const {
    take_positions(ctx, runs, sequences, width, all + first * width, some);
  }
  template <class Context, class E>
  void put(Context& ctx, std::int64_t width, E const* some, E* all) const {
    put_positions(ctx, runs, sequences, width, some, all + first * width);
  }
  /// The same of statistics [.., heads, positions].
  template <class Context>
  void take_scores(Context& ctx, std::int64_t heads, A const* all, A* some) const {
    take_positions(ctx, runs, sequences * heads, 1, all + first * heads, some);
  }
  template <class Context>
  void put_scores(Context& ctx, std::int64_t heads, A const* some, A* all) const {
    put_positions(ctx, runs, sequences * heads, 1, some, all + first * heads);
  }
};

/// An operation of which x, o, the statistics and y are of all positions, and the queries those of the runs,
/// as many as its shape has; its bias is theirs. y is another place than x.
template <class Context, class T>
void run_queries(Context& ctx, position_runs const& runs, local::attended_rows<T> const& arg) {
  local::attention_shape const& s = arg.shape;
  std::int64_t const channels = arg.in.channels, hidden = s.heads * s.width;
  bool const kept = arg.o != nullptr;
  local::detail::each_block_of_rows<typename Context::device_type>(
      s, [&](local::detail::block_of_rows const& block) {
        queries_of_rows<T> const some(ctx, runs, arg.in, block);
        scratch<T> o(ctx.memory(), kept ? some.count() * hidden : 0),
            y(ctx.memory(), some.count() * channels);
        scratch<accumulate_t<T>> max(ctx.memory(), kept ? some.count() * s.heads : 0),
            sum(ctx.memory(), kept ? some.count() * s.heads : 0);
        auto part = arg;
        part.in = some.in;
        part.keys = some.keys;
        part.shape = {1, block.rows, s.queries, s.keys, s.heads, s.width};
        part.bias += block.sample * s.heads * s.queries * s.keys;
        part.mask += some.first;
        part.y = y.data();
        if (kept) {
          part.o = o.data();
          part.statistics = {max.data(), sum.data()};
        }
        local::run_rows(ctx, part);
        some.put(ctx, channels, y.data(), arg.y);
        if (!kept) return;
        some.put(ctx, hidden, o.data(), arg.o);
        some.put_scores(ctx, s.heads, max.data(), arg.statistics.max);
        some.put_scores(ctx, s.heads, sum.data(), arg.statistics.sum);
      });
}

/// Its adjoint: du of all positions is added to, that of queries and that of keys.
template <class Context, class T>
void run_queries(Context& ctx, position_runs const& runs,
                 local::attended_rows_backward<T> const& arg) {
  using A = accumulate_t<T>;
  local::attention_shape const& s = arg.shape;
  std::int64_t const channels = arg.in.channels, hidden = s.heads * s.width;
  local::detail::each_block_of_rows<typename Context::device_type>(
      s, [&](local::detail::block_of_rows const& block) {
        queries_of_rows<T> const some(ctx, runs, arg.in, block);
        scratch<T> o(ctx.memory(), some.count() * hidden),
            dy(ctx.memory(), some.count() * channels);
        scratch<A> max(ctx.memory(), some.count() * s.heads), sum(ctx.memory(), max.size()),
            du(ctx.memory(), some.count() * channels);
        some.take(ctx, hidden, arg.o, o.data());
        some.take(ctx, channels, arg.dy, dy.data());
        some.take_scores(ctx, s.heads, arg.statistics.max, max.data());
        some.take_scores(ctx, s.heads, arg.statistics.sum, sum.data());
        std::int64_t const biases = block.sample * s.heads * s.queries * s.keys;
        auto part = arg;
        part.in = some.in;
        part.keys = some.keys;
        part.shape = {1, block.rows, s.queries, s.keys, s.heads, s.width};
        part.bias += biases;
        part.mask += some.first;
        part.o = o.data();
        part.statistics = {max.data(), sum.data()};
        part.dy = dy.data();
        part.du = du.data();
        part.du_keys = arg.du + some.first * channels;
        part.dbias += biases;
        local::run_rows(ctx, part);
        add_positions(ctx, runs, some.sequences, channels, du.data(),
                      arg.du + some.first * channels);
      });
}

}  // namespace dtm::detail
