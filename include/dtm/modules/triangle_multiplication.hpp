#pragma once
// Triangle multiplication, outgoing and incoming edges.
//
//   u = LN_in(x);  t = (u Wp^T) * sigmoid(u Wg^T) * mask;  a, b = the two halves of t's 2C channels
//   outgoing  o[i,j] = sum_k a[i,k] b[j,k]     incoming  o[i,j] = sum_k a[k,i] b[k,j]
//   y = (LN_out(o) Wpo^T) * sigmoid(u Wgo^T)                             no residual inside
//
// Everything but the sum over k is local. Two schedules, the same numbers; u = elements of the tile:
//
//   channel_all_to_all   any mesh. Channels are dealt to the ranks as whole N x N planes (uneven
//                        where P does not divide C), multiplied locally, and dealt back:
//                        3 (1 - 1/P) u sent per rank forward and the same backward. The sum over k
//                        is one product, independent of the mesh.
//   cannon               the reference's ring on a square P x P grid: (P-1)(2 + 3/P) u forward,
//                        (P-1)(4 + 5/P) u backward. Terms are added in accumulate_t.
//
// Saved, per rank: x, o, a, b (4 u), four statistics a position and the mask; everything else is
// recomputed. Parameter gradients add, dx is assigned; the mask has no gradient. Masks are
// weights: non-binary values are legal, and y at masked positions is not zeroed. Source: Boltz-2
// model/layers/triangular_mult.py; AlphaFold 2 supplement, algorithms 11 and 12.

#include <utility>

#include "dtm/contract/contract.hpp"
#include "dtm/modules/triangle_product.hpp"
#include "dtm/modules/triangle_rows.hpp"
#include "dtm/parameters/layers.hpp"

namespace dtm {

namespace module {
struct triangle_multiplication_outgoing {
  static constexpr char const* name = "triangle_multiplication_outgoing";
};
struct triangle_multiplication_incoming {
  static constexpr char const* name = "triangle_multiplication_incoming";
};
}  // namespace module

namespace detail {
template <class Direction>
struct triangle_tag {
  using type = module::triangle_multiplication_outgoing;
};
template <>
struct triangle_tag<incoming> {
  using type = module::triangle_multiplication_incoming;
};
}  // namespace detail

template <class Direction, class Space, std::int64_t C, class Schedule = channel_all_to_all>
struct triangle_multiplication : module_base<Space> {
  using self = triangle_multiplication;
  using tag = typename detail::triangle_tag<Direction>::type;
  template <class S>
  using in = triangle_multiplication<Direction, S, C, Schedule>;
  using T = typename Space::element;
  using X = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using statistics = layer_norm_statistics<X>;
  using rows = triangle_rows<Space, C>;
  using product = triangle_product<Direction, Space, C, Schedule>;
  using Operand = typename product::operand;
  static constexpr bool deals_planes = std::is_same_v<Schedule, channel_all_to_all>;
  static constexpr int most_inference_groups = C % 4 == 0 && C >= 64 ? 4 : 1;

  template <class Context>
  static constexpr bool deals = rows::of_peers&& deals_planes;

  struct contract {
    using inputs = dtm::inputs<named<arg::x, X>, named<arg::mask, Mask>>;
    using outputs = dtm::outputs<named<arg::y, X>>;
    using forward = typename product::forward_collectives;
    using backward = typename product::backward_collectives;
    using saved =
        dtm::saved<named<arg::x, X>, named<arg::a, Operand>, named<arg::b, Operand>,
                   named<arg::o, X>, named<arg::mean_in, typename statistics::type>,
                   named<arg::rstd_in, typename statistics::type>,
                   named<arg::mean_out, typename statistics::type>,
                   named<arg::rstd_out, typename statistics::type>, named<arg::mask, Mask>>;
    using budget = pair_budget<std::int64_t(sizeof(T)) * (4 * C + 1) +
                               4 * std::int64_t(sizeof(accumulate_t<T>))>;
    using within = within_budget<tag, saved, budget>;
  };

  using norm_type = layer_norm_parameters<Space, C>;
  using double_type = linear_parameters<Space, C, 2 * C>;
  using square_type = linear_parameters<Space, C, C>;
  BOOST_HANA_DEFINE_STRUCT(self, (norm_type, norm_in), (double_type, p_in), (double_type, g_in),
                           (norm_type, norm_out), (square_type, p_out), (square_type, g_out));

  template <class Context>
  explicit triangle_multiplication(Context& ctx)
      : norm_in(ctx), p_in(ctx), g_in(ctx), norm_out(ctx), p_out(ctx), g_out(ctx) {}

  struct kept {
    X x;
    statistics norm_in;
    Operand a, b;
    X o;
    statistics norm_out;
    Mask mask;
    std::int64_t bytes() const {
      return x.bytes() + a.bytes() + b.bytes() + o.bytes() + mask.bytes() + norm_in.mean.bytes() +
             norm_in.rstd.bytes() + norm_out.mean.bytes() + norm_out.rstd.bytes();
    }
  };
  struct result {
    X y;
    kept saved;
  };

  /// x [B, N, N, C] and mask [B, N, N], both pair-placed. Throws mesh_error on all ranks where the
  /// schedule does not fit the mesh.
  template <class Context>
  result forward(Context& ctx, X const& x, Mask const& mask) const {
    (void)sizeof(typename contract::within);
    if constexpr (deals<Context>)
      if (comm::opens_planes<X>(ctx, ctx.template along<row_axis<Space>, column_axis<Space>>()))
        return forward_in_place(ctx, x, mask);
    auto planes = rows::to_planes(ctx, x, mask, norm_in, p_in, g_in);
    auto [product_planes, a, b] = product::forward(ctx, std::move(planes.a), std::move(planes.b));
    auto [y, o, out_statistics] = rows::output(ctx, x, planes.norm, product_planes, *this);
    return {std::move(y),
            {x.clone(), std::move(planes.norm), std::move(a), std::move(b), std::move(o),
             std::move(out_statistics), mask.clone()}};
  }
  /// The same y with nothing kept. From 64 channels on, where their number divides by four, they pass in
  /// four groups, each with exchanges of its own (the same volume in all): beside x and y a rank holds
  /// one pair tile and a few of a group's. Where that gives one rank too much of the work there are two
  /// groups, or one.
  template <class Context>
  X infer(Context& ctx, X const& x, Mask const& mask) const {
    if constexpr (deals_planes && most_inference_groups == 4) {
      if (groups_are_even(ctx, 4)) return infer_in_groups<4>(ctx, x, mask);
      if (groups_are_even(ctx, 2)) return infer_in_groups<2>(ctx, x, mask);
      return infer_in_groups<1>(ctx, x, mask);
    } else {
      return infer_in_groups<most_inference_groups>(ctx, x, mask);
    }
  }

  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  /// Whether the rank with most planes has at most an eighth more of them than with all channels at once.
  template <class Context>
  static bool groups_are_even(Context& ctx, std::int64_t groups) {
    std::int64_t const ranks =
        ctx.template size<row_axis<Space>>() * ctx.template size<column_axis<Space>>();
    auto const most = [&](std::int64_t channels) { return (channels + ranks - 1) / ranks; };
    return 8 * groups * most(C / groups) <= 9 * most(C);
  }
  template <int Groups, class Context>
  X infer_in_groups(Context& ctx, X const& x, Mask const& mask) const {
    constexpr std::int64_t count = C / Groups;
    using part = detail::channel_tile<Space, count>;
    auto made = detail::statistics_for(ctx, x);
    auto const group_of = [&](std::int64_t first) {
      part a(ctx, rows::template planes_of<count>(x)), b(ctx, a.global());
      rows::template to_planes_part<count>(ctx, x, mask, norm_in, p_in, g_in, first, a, b, made);
      return triangle_product<Direction, Space, count, Schedule>::infer(ctx, std::move(a),
                                                                        std::move(b));
    };
    if constexpr (Groups == 1) {
      auto const o = group_of(0);
      return rows::output_only(ctx, x, made, o, *this);
    } else {
      typename rows::tile o(ctx, rows::template planes_of<C>(x));
      for (std::int64_t first = 0; first < C; first += count)
        rows::put_channels(ctx, group_of(first), first, o);
      return rows::output_only(ctx, x, made, o, *this);
    }
  }

  // Where ranks share memory: a and b are stored in the tiles of the ranks that multiply them, and o is
  // read where it was multiplied.
  template <class Context>
  result forward_in_place(Context& ctx, X const& x, Mask const& mask) const {
    using tile = typename rows::tile;
    auto& ranks = ctx.template along<row_axis<Space>, column_axis<Space>>();
    constexpr unsigned mask_of_axes =
        detail::axis_mask<typename Space::mesh_type, row_axis<Space>, column_axis<Space>>;
    auto const extents = rows::template planes_of<C>(x);
    auto const here = comm::call_site::current();
    comm::planes_stored_by_peers<tile, Operand> a_tiles(ctx, ranks, mask_of_axes, extents, "a",
                                                        here);
    comm::planes_stored_by_peers<tile, Operand> b_tiles(ctx, ranks, mask_of_axes, extents, "b",
                                                        here);
    auto made =
        rows::to_planes_elsewhere(ctx, x, mask, norm_in, p_in, g_in, a_tiles.to(), b_tiles.to());
    Operand a = a_tiles.close(ctx), b = b_tiles.close(ctx);
    auto const dealt = product::multiply_dealt(ctx, a, b);
    comm::require_finite(ctx, dealt, "collective", "o", here);
    comm::planes_read_from_peers<tile, Operand> o_tiles(ctx, ranks, mask_of_axes, dealt, extents,
                                                        "o", here);
    auto [y, o, out_statistics] =
        rows::output_of(ctx, x, made, nullptr, rows::scattered(o_tiles.from()), *this);
    o_tiles.close();
    return {std::move(y),
            {x.clone(), std::move(made), std::move(a), std::move(b), std::move(o),
             std::move(out_statistics), mask.clone()}};
  }

  /// dy is pair-placed, complete on every axis; so is dx.
  template <class Context>
  X backward(Context& ctx, kept saved, X const& dy, gradients_of_t<self>& gradients) const {
    auto [d_o, du] = rows::output_backward(ctx, saved.x, saved.norm_in, saved.o, saved.norm_out,
                                           *this, dy, gradients);
    saved.o.release();
    auto const cotangents =
        product::backward(ctx, std::move(d_o), std::move(saved.a), std::move(saved.b));
    return rows::to_planes_backward(ctx, saved.x, saved.mask, saved.norm_in, *this, cotangents.da,
                                    cotangents.db, std::move(du), gradients);
  }
  template <class Context, class Kept, class Got, class Gradients>
  X backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::dy>, X, Got>();
    __builtin_unreachable();
  }
};

}  // namespace dtm
