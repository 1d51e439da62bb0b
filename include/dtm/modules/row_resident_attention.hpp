#pragma once
// Triangle attention with whole rows on each rank. The columns' axis is exchanged for rows, so that a
// rank has N / (cp0 cp1) rows with all their positions; attention over a row is local then, and what
// it needs of others is the bias alone, N x N x heads, which is gathered, used and dropped.
//
// Written for rows over the mesh's first axis. The ending node is the same on the transposed pair: its
// tile on the transposed mesh (backend/transposed.hpp).

#include <type_traits>
#include <utility>

#include "dtm/backend/transposed.hpp"
#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/core/space.hpp"
#include "dtm/ops/attended_rows.hpp"
#include "dtm/ops/channels.hpp"
#include "dtm/ops/fused_rows.hpp"
#include "dtm/ops/pairs.hpp"

namespace dtm {

struct starting {};
struct ending {};

/// Schedules of triangle attention.
struct row_resident {
  static constexpr char const* name = "row_resident";
};

namespace detail {

/// The space in which a node's sequences are rows.
template <class Node, class Space>
struct attention_frame {
  using type = Space;
};
template <class T, class Mesh, class Device>
struct attention_frame<ending, space<T, Mesh, Device>> {
  using type = space<T, transposed_mesh_t<Mesh>, Device>;
};
template <class Space>
struct attention_frame<ending, pending_gradients<Space>> : attention_frame<ending, Space> {};
template <class Space>
struct attention_frame<ending, complete_gradients<Space>> : attention_frame<ending, Space> {};
template <class Space>
struct attention_frame<ending, optimiser_state<Space>> : attention_frame<ending, Space> {};
template <class Node, class Space>
using attention_frame_t = typename attention_frame<Node, Space>::type;

/// f(a context of the frame).
template <class Node, class Context, class F>
decltype(auto) on_frame(Context& ctx, F&& f) {
  if constexpr (std::is_same_v<Node, ending>) {
    transposed_context<Context> view(ctx);
    return f(view);
  } else {
    return f(ctx);
  }
}

/// What attention keeps for backward, whatever the schedule.
template <class X, class Hidden, class Scores, class Mask>
struct attention_kept {
  X x;
  layer_norm_statistics<X> norm;
  Hidden o;
  Scores score_max, score_sum;
  Mask mask;
  std::int64_t bytes() const {
    return x.bytes() + norm.mean.bytes() + norm.rstd.bytes() + o.bytes() + score_max.bytes() +
           score_sum.bytes() + mask.bytes();
  }
};
template <class X, class Hidden, class Scores, class Mask>
using attention_saved = dtm::saved<named<arg::x, X>, named<arg::o, Hidden>, named<arg::mask, Mask>,
                                   named<arg::score_max, Scores>, named<arg::score_sum, Scores>,
                                   named<arg::mean, typename layer_norm_statistics<X>::type>,
                                   named<arg::rstd, typename layer_norm_statistics<X>::type>>;

/// Statistics of a pair's positions, to be filled.
template <class Statistics, class View, class X>
Statistics fresh_statistics(View& view, X const& x) {
  using type = typename Statistics::type;
  global_extents<3> const positions{{x.global_extent(0), x.global_extent(1), x.global_extent(2)}};
  return {type(view, positions), type(view, positions)};
}

/// x at the positions of the statistics, and its layer_norm.
template <class Module, class T, class Statistics>
local::normalised_rows<T> normalised_pair(Module const& m, T const* x, Statistics const& made) {
  auto const held = made.mean.to_local();
  return {x,
          held.extent[0],
          held.extent[1] * held.extent[2],
          last_channels<typename Module::X>,
          norm_weights_of(m.layer_norm),
          pointers_to(made)};
}

}  // namespace detail

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

  using forward_collectives =
      collectives<on_tensor<arg::x, to_rows>, on_tensor<arg::mask, to_rows>,
                  on_tensor<arg::bias, gather_columns>, on_tensor<arg::bias, gather_rows>,
                  on_tensor<arg::y, from_rows>>;
  using backward_collectives =
      collectives<on_tensor<arg::dy, to_rows>, on_tensor<arg::bias, gather_columns>,
                  on_tensor<arg::bias, gather_rows>, on_tensor<arg::d_bias, reduce_rows>,
                  on_tensor<arg::d_bias, reduce_columns>, on_tensor<arg::dx, from_rows>>;
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
      attend(view, m, x, saved.x.data(), saved.mask.data(), saved.norm, saved.o.data(),
             {saved.score_max.data(), saved.score_sum.data()}, y.data());
      return {returned(ctx, view, std::move(y), "y"), std::move(saved)};
    });
  }

  /// The same y with nothing kept: beside x and y a rank holds one pair tile where rows travel or are
  /// columns, the gathered bias, and a few rows.
  template <class Context, class Module>
  static X infer(Context& ctx, Module const& m, X const& x, Mask const& mask) {
    return detail::on_frame<Node>(ctx, [&](auto& view) -> X {
      if constexpr (!is_ending)
        if (view.template size<columns>() == 1) {  // rows are whole where they lie
          rows y(view, x.global());
          attend(view, m, x, x.data(), mask.data(), detail::fresh_statistics<statistics>(view, x),
                 nullptr, {}, y.data());
          return returned(ctx, view, std::move(y), "y");
        }
      rows y = exchanged(view, x, "x");
      {
        auto const mask_rows = exchanged(view, mask, "mask");
        attend(view, m, x, y.data(), mask_rows.data(),
               detail::fresh_statistics<statistics>(view, x), nullptr, {}, y.data());
      }
      return returned(ctx, view, std::move(y), "y");
    });
  }

  template <class Context, class Module, class Gradients>
  static X backward(Context& ctx, Module const& m, kept saved, X const& dy, Gradients& gradients) {
    return detail::on_frame<Node>(ctx, [&](auto& view) -> X {
      auto const in = detail::normalised_pair(m, saved.x.data(), saved.norm);
      rows du(view, dy.global());
      auto d_bias = [&] {
        rows const upstream = exchanged(view, dy, "dy");
        auto const all_bias = gathered_bias(view, m, dy, in);
        auto const added = additive(view, m, saved.mask.data(), in);
        bias_cotangent sum(view, all_bias.global());
        local::for_each(view, sum.size(), kernels::set_zero<A>{sum.data()});
        local::run_rows(
            view, local::attended_rows_backward<T>{
                      in,
                      shape_of(saved.norm),
                      weights_of(m),
                      all_bias.data(),
                      added.data(),
                      saved.o.data(),
                      {saved.score_max.data(), saved.score_sum.data()},
                      upstream.data(),
                      du.data(),
                      {gradients.mha.linear_q.weight.data(), gradients.mha.linear_k.weight.data(),
                       gradients.mha.linear_v.weight.data(), gradients.mha.linear_g.weight.data(),
                       gradients.mha.linear_o.weight.data()},
                      sum.data()});
        return sum;
      }();
      saved.o.release();
      auto d_rows = apply<reduce_rows>(view, std::move(d_bias), "d_bias");
      auto const d_planes = apply<reduce_columns>(view, std::move(d_rows), "d_bias");
      local::run_rows(view, local::norm_to_planes_backward<T>{
                                in, m.linear.weight.data(), Heads, d_planes.data(), du.data(),
                                du.data(), gradients.linear.weight.data(),
                                detail::norm_gradients_of(gradients.layer_norm)});
      saved.x.release();
      return returned(ctx, view, std::move(du), "dx");
    });
  }

 private:
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
  static void attend(View& view, Module const& m, X const& like, T const* x, T const* mask,
                     statistics const& norm, T* o, local::attention_statistics<A> scores, T* y) {
    auto const in = detail::normalised_pair(m, x, norm);
    auto const all_bias = gathered_bias(view, m, like, in);
    auto const added = additive(view, m, mask, in);
    local::run_rows(view, local::attended_rows<T>{in, shape_of(norm), weights_of(m),
                                                  all_bias.data(), added.data(), o, scores, y});
  }

  template <class View, class Module>
  static gathered gathered_bias(View& view, Module const& m, X const& like,
                                local::normalised_rows<T> const& in) {
    global_extents<4> const planes{
        {like.global_extent(0), Heads, like.global_extent(1), like.global_extent(2)}};
    bias own(view, planes);
    local::run_rows(
        view, local::norm_to_planes<T>{in, m.linear.weight.data(), Heads, A(1e-5), own.data()});
    auto across = apply<gather_columns>(view, std::move(own), "bias");
    return apply<gather_rows>(view, std::move(across), "bias");
  }
  template <class View, class Module>
  static scratch<A> additive(View& view, Module const& m, T const* mask,
                             local::normalised_rows<T> const& in) {
    scratch<A> added(view.memory(), in.batch * in.positions);
    local::for_each(view, added.size(),
                    kernels::additive_mask<T>{mask, A(m.infinity), added.data()});
    return added;
  }

  static local::attention_shape shape_of(statistics const& made) {
    auto const held = made.mean.to_local();
    return {held.extent[0], held.extent[1], held.extent[2], held.extent[2], Heads, Width};
  }
  template <class Module>
  static local::attention_weights<T const> weights_of(Module const& m) {
    return {m.mha.linear_q.weight.data(), m.mha.linear_k.weight.data(),
            m.mha.linear_v.weight.data(), m.mha.linear_g.weight.data(),
            m.mha.linear_o.weight.data()};
  }
  static global_extents<4> extents_of(X const& x, std::int64_t channels) {
    return {{x.global_extent(0), x.global_extent(1), x.global_extent(2), channels}};
  }
  static global_extents<4> score_extents(X const& x) {
    return {{x.global_extent(0), x.global_extent(1), Heads, x.global_extent(2)}};
  }
};

}  // namespace dtm
