#pragma once
// Triangle attention with whole rows on each rank. The columns' axis is exchanged for rows, so that a
// rank has N / (cp0 cp1) rows with all their positions; attention over a row is local then, and what
// it needs of others is the bias alone, N x N x heads. That comes in panels: the bias of some queries of
// all rows, gathered, used and dropped, is at most a quarter of a pair tile, so that memory falls as the
// ranks. Where one panel is not enough keys are projected again for each.
//
// Written for rows over the mesh's first axis. The ending node is the same on the transposed pair: its
// tile on the transposed mesh (backend/transposed.hpp).

#include <algorithm>
#include <type_traits>
#include <utility>

#include "dtm/modules/attention_panels.hpp"
#include "dtm/modules/attention_parts.hpp"
#include "dtm/ops/attended_rows.hpp"
#include "dtm/ops/pairs.hpp"

namespace dtm {

/// Schedules of triangle attention.
struct row_resident {
  static constexpr char const* name = "row_resident";
};

template <class Node, class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width>
struct row_resident_attention {
  using T = typename Space::element;
  using A = accumulate_t<T>;
  using X = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using frame = detail::attention_frame_t<Node, Space>;
  static constexpr bool is_ending = std::is_same_v<Node, ending>;

  using columns = column_axis<frame>;
  using to_rows = all_to_all<move<columns, 1>>;
  using from_rows = all_to_all<move<columns, 2>>;
  template <class... Channels>
  using rows_of = after_t<to_rows, pair_tensor<frame, Channels...>>;  // [b, rows, N, ...]

  using rows = rows_of<c<C>>;
  using statistics = layer_norm_statistics<rows>;
  using hidden = rows_of<c<Heads * Width>>;
  using bias = channels_first_t<rows_of<c<Heads>>>;  // [b, heads, rows, N]
  using score_statistic =                            // [b, rows, heads, N]
      tensor<A, detail::permuted_layout_t<typename rows_of<c<Heads>>::layout_type, 0, 1, 3, 2>,
             typename Space::device>;

  using gather_columns = all_gather<columns>;
  using gather_rows = all_gather<row_axis<frame>>;
  using gathered = after_t<gather_rows, after_t<gather_columns, bias>>;
  using bias_cotangent = with_element_t<cotangent_t<gathered>, A>;
  using reduce_rows = reduce_scatter<row_axis<frame>, 2>;
  using reduce_columns = reduce_scatter<columns, 2>;
  using bias_sums = after_t<reduce_columns, after_t<reduce_rows, bias_cotangent>>;
  using sums_of_rows = with_element_t<rows, A>;

  using forward_collectives =
      collectives<on_tensor<arg::x, to_rows>, on_tensor<arg::mask, to_rows>,
                  on_tensor<arg::bias, by_panels<gather_columns>>,
                  on_tensor<arg::bias, by_panels<gather_rows>>, on_tensor<arg::y, from_rows>>;
  using backward_collectives =
      collectives<on_tensor<arg::dy, to_rows>, on_tensor<arg::bias, by_panels<gather_columns>>,
                  on_tensor<arg::bias, by_panels<gather_rows>>,
                  on_tensor<arg::d_bias, by_panels<reduce_rows>>,
                  on_tensor<arg::d_bias, by_panels<reduce_columns>>, on_tensor<arg::dx, from_rows>>;
  using saved = detail::attention_saved<rows, hidden, score_statistic, rows_of<>>;
  using kept = detail::attention_kept<rows, hidden, score_statistic, rows_of<>>;
  struct result {
    X y;
    kept saved;
  };

  template <class Context, class Module>
  static result forward(Context& ctx, Module const& m, X const& x, Mask const& mask) {
    return detail::on_frame<Node>(ctx, [&](auto& view) -> result {
      kept saved{exchanged(view, x, "x"),
                 detail::fresh_statistics<statistics>(view, x),
                 hidden(view, extents_of(x, Heads * Width)),
                 score_statistic(view, score_extents(x)),
                 score_statistic(view, score_extents(x)),
                 exchanged(view, mask, "mask")};
      rows y(view, x.global());
      attend(view, m, x, panels_of(view, x), saved.x.data(), saved.mask.data(), saved.norm,
             saved.o.data(), {saved.score_max.data(), saved.score_sum.data()}, y.data());
      return {returned(ctx, view, std::move(y), "y"), std::move(saved)};
    });
  }

  /// The same y with nothing kept: beside x and y a rank holds one pair tile. Where a gathered panel is
  /// there twice, as received and in its place, panels are smaller for that.
  template <class Context, class Module>
  static X infer(Context& ctx, Module const& m, X const& x, Mask const& mask) {
    bool const copies = !reads_peers(ctx);
    return detail::on_frame<Node>(ctx, [&](auto& view) -> X {
      auto const run = [&](T const* x_rows, T const* mask_rows, T* y) {
        attend(view, m, x, panels_of(view, x, y == x_rows && copies ? 6 : 4), x_rows, mask_rows,
               detail::fresh_statistics<statistics>(view, x), nullptr, {}, y);
      };
      if constexpr (!is_ending)
        if (view.template size<columns>() == 1) {  // rows are whole where they lie
          rows y(view, x.global());
          run(x.data(), mask.data(), y.data());
          return returned(ctx, view, std::move(y), "y");
        }
      rows travelled = exchanged(view, x, "x");
      run(travelled.data(), exchanged(view, mask, "mask").data(), travelled.data());
      return returned(ctx, view, std::move(travelled), "y");
    });
  }

  template <class Context, class Module, class Gradients>
  static X backward(Context& ctx, Module const& m, kept saved, X const& dy, Gradients& gradients) {
    return detail::on_frame<Node>(ctx, [&](auto& view) -> X {
      auto const in = detail::normalised_pair(m, saved.x.data(), saved.norm);
      sums_of_rows du(view, dy.global());
      auto const d_bias = [&] {
        rows const upstream = exchanged(view, dy, "dy");
        return attend_backward(view, m, dy, in, saved, upstream.data(), gradients, du.data());
      }();
      saved.o.release();
      rows dx = without_bias(view, m, in, d_bias, std::move(du), gradients);
      saved.x.release();
      return returned(ctx, view, std::move(dx), "dx");
    });
  }

 private:
  /// Whether exchanges copy once, out of the memory of others. The same on all ranks of the context axes.
  template <class Context>
  static bool reads_peers(Context& ctx) {
    if constexpr (requires { along_both(ctx).shares_memory(); })
      return along_both(ctx).shares_memory();
    else
      return false;
  }
  template <class Context>
  static auto& along_both(Context& ctx) {
    return ctx.template along<row_axis<Space>, column_axis<Space>>();
  }

  /// Rows of a pair's tile, from where it lies.
  template <class View, class Pair>
  static auto exchanged(View& view, Pair const& pair, char const* name) {
    if constexpr (is_ending)
      return apply<to_rows>(view, swap_pairs(view, pair), name);
    else
      return apply<to_rows>(view, pair, name);
  }
  template <class Context, class View>
  static X returned(Context& ctx, View& view, rows y, char const* name) {
    auto tile = apply<from_rows>(view, std::move(y), name);
    if constexpr (is_ending)
      return swap_pairs(ctx, tile);
    else
      return tile;
  }

  /// y of rows at `x`, which may be its place; fills the statistics, and o and the scores' where there
  /// are any.
  template <class View, class Module>
  static void attend(View& view, Module const& m, X const& like, detail::bias_panels const& panels,
                     T const* x, T const* mask, statistics const& norm, T* o,
                     local::attention_statistics<A> scores, T* y) {
    auto const in = detail::normalised_pair(m, x, norm);
    auto const added = additive(view, m, mask, in);
    bias own = bias_planes(view, m, like, in);
    local::attended_rows<T> const all{in,
                                      in,
                                      panels.shape(in.batch, panels.tokens(), Width),
                                      weights_of(m),
                                      nullptr,
                                      added.data(),
                                      o,
                                      scores,
                                      y};
    if (panels.count > 1 && y == x)
      attend_in_place(view, panels, own, all, y);
    else
      each_panel(view, panels, own, all, [&](auto const& queries, auto const& of_panel) {
        if (panels.count == 1)
          local::run_rows(view, of_panel);
        else
          detail::run_queries(view, queries, of_panel);
      });
  }
  /// f(queries, the operation on them) for every panel.
  template <class View, class F>
  static void each_panel(View& view, detail::bias_panels const& panels, bias& own,
                         local::attended_rows<T> const& all, F const& f) {
    for (std::int64_t p = 0; p < panels.count; ++p) {
      auto const some = gathered_panel(view, panels, p, own);
      auto part = all;
      part.shape.queries = panels.queries(p).size();
      part.bias = some.data();
      f(panels.queries(p), part);
    }
  }
  /// Every panel wants all keys of a row. Half of the rows at a time are apart from x until they are
  /// done, and the bias is gathered for each half: half a pair tile in place of a whole one.
  template <class View>
  static void attend_in_place(View& view, detail::bias_panels const& panels, bias& own,
                              local::attended_rows<T> const& all, T* place) {
    std::int64_t const half = (panels.rows + 1) / 2, row = panels.tokens() * C;
    for (std::int64_t first = 0; first < panels.rows; first += half) {
      position_runs const these{1, panels.rows, first, std::min(half, panels.rows - first)};
      scratch<T> y(view.memory(), all.in.batch * these.length * row);
      each_panel(view, panels, own, all, [&](auto const& queries, auto const& of_panel) {
        for (std::int64_t b = 0; b < all.in.batch; ++b)
          detail::run_queries(
              view, queries, rows_of_sample(of_panel, b, these, y.data() + b * these.length * row));
      });
      put_positions(view, these, all.in.batch, row, y.data(), place);
    }
  }
  /// The rows of one sample, y to another place.
  static local::attended_rows<T> rows_of_sample(local::attended_rows<T> const& all, std::int64_t b,
                                                position_runs const& these, T* y) {
    local::attention_shape const& s = all.shape;
    auto part = all;
    std::int64_t const at = (b * s.rows + these.first) * s.keys;
    part.in.x += at * C;
    part.in.statistics.mean += at;
    part.in.statistics.rstd += at;
    part.in.batch = 1;
    part.in.positions = these.length * s.keys;
    part.keys = part.in;
    part.mask += at;
    part.bias += b * s.heads * s.queries * s.keys;
    part.shape.batch = 1;
    part.shape.rows = these.length;
    part.y = y;
    return part;
  }

  /// The cotangent of this rank's rows of the bias; assigns du.
  template <class View, class Module, class Gradients>
  static bias_sums attend_backward(View& view, Module const& m, X const& like,
                                   local::normalised_rows<T> const& in, kept const& saved,
                                   T const* dy, Gradients& gradients, A* du) {
    auto const added = additive(view, m, saved.mask.data(), in);
    bias own = bias_planes(view, m, like, in);
    auto const panels = panels_of(view, like);
    bias_sums d_bias(view, own.global());
    if (panels.count > 1)
      local::for_each(view, in.batch * in.positions * C, kernels::set_zero<A>{du});
    for (std::int64_t p = 0; p < panels.count; ++p) {
      auto const some = gathered_panel(view, panels, p, own);
      auto const queries = panels.queries(p);
      bias_cotangent sum(view, some.global());
      local::for_each(view, sum.size(), kernels::set_zero<A>{sum.data()});
      local::attended_rows_backward<T> const rows_of_panel{
          in,
          in,
          panels.shape(in.batch, queries.size(), Width),
          weights_of(m),
          some.data(),
          added.data(),
          saved.o.data(),
          {saved.score_max.data(), saved.score_sum.data()},
          dy,
          du,
          nullptr,
          gradients_of(gradients),
          sum.data()};
      if (panels.count == 1)
        local::run_rows(view, rows_of_panel);
      else
        detail::run_queries(view, queries, rows_of_panel);
      auto rows_of_sum = apply<reduce_rows>(view, std::move(sum), "d_bias");
      bias_sums const part = apply<reduce_columns>(view, std::move(rows_of_sum), "d_bias");
      put_positions(view, panels.own_rows(p), in.batch * Heads, panels.tokens(), part.data(),
                    d_bias.data());
    }
    return d_bias;
  }

  /// dx, from du and what the bias adds to it.
  template <class View, class Module, class Gradients>
  static rows without_bias(View& view, Module const& m, local::normalised_rows<T> const& in,
                           bias_sums const& d_bias, sums_of_rows du, Gradients& gradients) {
    auto const run = [&](T* dx) {
      local::run_rows(
          view, local::norm_to_planes_backward<T>{in, m.linear.weight.data(), Heads, d_bias.data(),
                                                  du.data(), dx, gradients.linear.weight.data(),
                                                  detail::norm_gradients_of(gradients.layer_norm)});
    };
    if constexpr (std::is_same_v<T, A>) {
      run(du.data());
      return du;
    } else {
      rows dx(view, du.global());
      run(dx.data());
      return dx;
    }
  }

  template <class View>
  static detail::bias_panels panels_of(View& view, X const& like, int share = 4) {
    return detail::bias_panels(
        like.global_extent(1),
        view.template size<row_axis<frame>>() * view.template size<columns>(), C, Heads, share);
  }
  /// A panel of the bias, whole; where it is the only one `own` is given away.
  template <class View>
  static gathered gathered_panel(View& view, detail::bias_panels const& panels, std::int64_t p,
                                 bias& own) {
    auto const part = [&] {
      if (panels.count == 1) return std::move(own);
      auto extents = own.global();
      extents[2] = panels.ranks * panels.here(p);
      bias some(view, extents);
      take_positions(view, panels.own_rows(p), own.to_local().extent[0] * Heads, extents[3],
                     own.data(), some.data());
      return some;
    };
    auto across = apply<gather_columns>(view, part(), "bias");
    return apply<gather_rows>(view, std::move(across), "bias");
  }

  /// Of this rank's rows; fills the statistics.
  template <class View, class Module>
  static bias bias_planes(View& view, Module const& m, X const& like,
                          local::normalised_rows<T> const& in) {
    bias own(view, global_extents<4>{{like.global_extent(0), Heads, like.global_extent(1),
                                      like.global_extent(2)}});
    local::run_rows(
        view, local::norm_to_planes<T>{in, m.linear.weight.data(), Heads, A(1e-5), own.data()});
    return own;
  }
  template <class View, class Module>
  static scratch<A> additive(View& view, Module const& m, T const* mask,
                             local::normalised_rows<T> const& in) {
    scratch<A> added(view.memory(), in.batch * in.positions);
    local::for_each(view, added.size(),
                    kernels::additive_mask<T>{mask, A(m.infinity), added.data()});
    return added;
  }

  template <class Module>
  static local::attention_weights<T const> weights_of(Module const& m) {
    return {m.mha.linear_q.weight.data(), m.mha.linear_k.weight.data(),
            m.mha.linear_v.weight.data(), m.mha.linear_g.weight.data(),
            m.mha.linear_o.weight.data()};
  }
  template <class Gradients>
  static local::attention_weights<A> gradients_of(Gradients& gradients) {
    return {gradients.mha.linear_q.weight.data(), gradients.mha.linear_k.weight.data(),
            gradients.mha.linear_v.weight.data(), gradients.mha.linear_g.weight.data(),
            gradients.mha.linear_o.weight.data()};
  }
  static global_extents<4> extents_of(X const& x, std::int64_t channels) {
    return {{x.global_extent(0), x.global_extent(1), x.global_extent(2), channels}};
  }
  static global_extents<4> score_extents(X const& x) {
    return {{x.global_extent(0), x.global_extent(1), Heads, x.global_extent(2)}};
  }
};

}  // namespace dtm
