#pragma once
// The row-wise halves of triangle multiplication, before and after the product of channel planes:
//
//   to_planes   u = LN_in(x); t = (u Wp^T) sigmoid(u Wg^T) mask; a, b = t's halves, [b, C, i, j]
//   output      o from planes; y = (LN_out(o) Wpo^T) sigmoid(u Wgo^T)
//
// and their adjoints, which recompute u, w and the projections from kept statistics. Local: planes are
// tiles in the placement of a pair. What lies between is there for some positions at a time.

#include <utility>

#include "dtm/core/space.hpp"
#include "dtm/ops/channels.hpp"
#include "dtm/ops/fused_rows.hpp"
#include "dtm/ops/gated_rows.hpp"

namespace dtm {

namespace detail {

// Channel-first pair tile [b, C, i, j] with i over rows and j over columns.
template <class Space, std::int64_t C>
using channel_tile = channels_first_t<pair_tensor<Space, c<C>>>;

}  // namespace detail

template <class Space, std::int64_t C>
struct triangle_rows {
  using T = typename Space::element;
  using A = accumulate_t<T>;
  using X = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using tile = detail::channel_tile<Space, C>;
  using statistics = layer_norm_statistics<X>;
  /// Whether planes may lie in the tiles of other ranks.
  static constexpr bool of_peers = local::fused_rows<typename Space::device>::available;

  struct planes {
    tile a, b;
    statistics norm;
  };
  template <class Context, class Norm, class Linear>
  static planes to_planes(Context& ctx, X const& x, Mask const& mask, Norm const& norm,
                          Linear const& p, Linear const& g) {
    planes result{tile(ctx, planes_of<C>(x)), tile(ctx, planes_of<C>(x)),
                  detail::statistics_for(ctx, x)};
    to_planes_part<C>(ctx, x, mask, norm, p, g, 0, result.a, result.b, result.norm);
    return result;
  }
  /// Channels [first, first + Count) of both halves alone; fills the statistics.
  template <std::int64_t Count, class Context, class Norm, class Linear, class Part>
  static void to_planes_part(Context& ctx, X const& x, Mask const& mask, Norm const& norm,
                             Linear const& p, Linear const& g, std::int64_t first, Part& a, Part& b,
                             statistics& made) {
    static_assert(std::is_same_v<Part, detail::channel_tile<Space, Count>>);
    local::run_rows(ctx, local::gated_to_planes<T>{detail::normalised(x, norm, made),
                                                   p.weight.data(), g.weight.data(), mask.data(),
                                                   A(1e-5), first, Count, a.data(), b.data()});
  }

  /// All channels of both halves into planes that lie elsewhere, where `of_peers`; the statistics.
  template <class Context, class Norm, class Linear, class Planes>
  static statistics to_planes_elsewhere(Context& ctx, X const& x, Mask const& mask,
                                        Norm const& norm, Linear const& p, Linear const& g,
                                        Planes const& a, Planes const& b) {
    auto made = detail::statistics_for(ctx, x);
    local::run_fused(ctx,
                     local::gated_to_planes<T>{detail::normalised(x, norm, made), p.weight.data(),
                                               g.weight.data(), mask.data(), A(1e-5), 0, C, nullptr,
                                               nullptr, scattered(a), scattered(b)});
    return made;
  }
  template <class Planes>
  static local::scattered_planes<T> scattered(Planes const& planes) {
    return {planes.first.data(), planes.columns, planes.row_step};
  }

  /// da and db as planes, du the rest of u's cotangent; dx. Adds the gradients of norm, p and g.
  template <class Context, class Module, class Gradients>
  static X to_planes_backward(Context& ctx, X const& x, Mask const& mask, statistics const& made,
                              Module const& m, tile const& da, tile const& db, X du,
                              Gradients& gradients) {
    local::run_rows(ctx, local::gated_to_planes_backward<T>{
                             detail::normalised(x, m.norm_in, made), m.p_in.weight.data(),
                             m.g_in.weight.data(), mask.data(), da.data(), db.data(), du.data(),
                             du.data(), gradients.p_in.weight.data(), gradients.g_in.weight.data(),
                             detail::norm_gradients_of(gradients.norm_in)});
    return du;
  }

  /// Channels [first, first + Count) of planes.
  template <class Context, class Part>
  static void put_channels(Context& ctx, Part const& part, std::int64_t first, tile& planes) {
    auto const from = part.to_local();
    std::int64_t const positions = from.extent[2] * from.extent[3];
    for (std::int64_t b = 0; b < from.extent[0]; ++b)
      ctx.memory().copy_within(planes.data() + (b * C + first) * positions,
                               part.data() + b * from.extent[1] * positions,
                               std::size_t(from.extent[1] * positions) * sizeof(T));
  }

  struct output_result {
    X y, o;
    statistics norm;
  };
  /// `made` are the statistics of to_planes.
  template <class Context, class Module>
  static output_result output(Context& ctx, X const& x, statistics const& made, tile const& planes,
                              Module const& m) {
    return output_of(ctx, x, made, planes.data(), {}, m);
  }

  /// The same of planes that lie elsewhere, where `of_peers`, or together where those have no `first`.
  template <class Context, class Module>
  static output_result output_of(Context& ctx, X const& x, statistics const& made,
                                 T const* together, local::scattered_planes<T> elsewhere,
                                 Module const& m) {
    output_result result{X(ctx, x.global()), X(ctx, x.global()), detail::statistics_for(ctx, x)};
    local::run_rows(ctx, local::gated_output<T>{
                             detail::normalised(x, m.norm_in, made), together,
                             detail::norm_weights_of(m.norm_out), detail::pointers_to(result.norm),
                             m.p_out.weight.data(), m.g_out.weight.data(), A(1e-5), result.o.data(),
                             result.y.data(), elsewhere});
    return result;
  }

  /// y alone.
  template <class Context, class Module>
  static X output_only(Context& ctx, X const& x, statistics const& made, tile const& planes,
                       Module const& m) {
    X y(ctx, x.global());
    local::run_rows(ctx, local::gated_output<T>{detail::normalised(x, m.norm_in, made),
                                                planes.data(),
                                                detail::norm_weights_of(m.norm_out),
                                                {nullptr, nullptr},
                                                m.p_out.weight.data(),
                                                m.g_out.weight.data(),
                                                A(1e-5),
                                                nullptr,
                                                y.data()});
    return y;
  }

  struct output_cotangents {
    tile d_o;
    X du;
  };
  /// Adds the gradients of norm_out, p_out and g_out.
  template <class Context, class Module, class Gradients>
  static output_cotangents output_backward(Context& ctx, X const& x, statistics const& in_made,
                                           X const& o, statistics const& out_made, Module const& m,
                                           X const& dy, Gradients& gradients) {
    output_cotangents result{tile(ctx, planes_of<C>(x)), X(ctx, x.global())};
    local::run_rows(
        ctx, local::gated_output_backward<T>{
                 detail::normalised(x, m.norm_in, in_made), o.data(),
                 detail::norm_weights_of(m.norm_out), detail::pointers_to(out_made),
                 m.p_out.weight.data(), m.g_out.weight.data(), dy.data(), result.d_o.data(),
                 result.du.data(), gradients.p_out.weight.data(), gradients.g_out.weight.data(),
                 detail::norm_gradients_of(gradients.norm_out)});
    return result;
  }

  template <std::int64_t Count>
  static global_extents<4> planes_of(X const& x) {
    return {{x.global_extent(0), Count, x.global_extent(1), x.global_extent(2)}};
  }
};

}  // namespace dtm
