#pragma once
// Transition: the SwiGLU feed-forward of every track.
//
//   u = LN(x);  h1 = u W1^T;  h2 = u W2^T;  y = (silu(h1) * h2) W3^T          no residual inside
//
// Position-wise: any placement that keeps the last dimension whole, output placed as the input; no
// communication, forward or backward. Saves x and two statistics a position, recomputes the rest; what
// lies between is there for some positions at a time, on every device.
// Parameter gradients add, dx is assigned. Source: Boltz-2 model/layers/transition.py
// (Transition).

#include <utility>

#include "dtm/contract/contract.hpp"
#include "dtm/ops/fused_rows.hpp"
#include "dtm/ops/swiglu_rows.hpp"
#include "dtm/parameters/layers.hpp"

namespace dtm {

namespace module {
struct transition {
  static constexpr char const* name = "transition";
};
}  // namespace module

/// Channels -> Hidden -> Channels. `X` is the tensor it works on; a pair by default.
template <class Space, std::int64_t Channels, std::int64_t Hidden,
          class X = pair_tensor<Space, c<Channels>>>
struct transition : module_base<Space> {
  using self = transition;
  using tag = module::transition;
  template <class S>
  using in = transition<S, Channels, Hidden, X>;
  using T = typename X::element_type;
  using Dx = cotangent_t<X>;
  using statistics = layer_norm_statistics<X>;

  struct contract {
    using inputs = dtm::inputs<named<arg::x, X>>;
    using outputs = dtm::outputs<named<arg::y, X>>;
    using forward = collectives<>;
    using backward = collectives<>;
    using saved = dtm::saved<named<arg::x, X>, named<arg::mean_in, typename statistics::type>,
                             named<arg::rstd_in, typename statistics::type>>;
    static constexpr std::int64_t allowed = sizeof(T) * Channels + 2 * sizeof(accumulate_t<T>);
    using budget =
        std::conditional_t<detail::large_of<X> == 2, pair_budget<allowed>, single_budget<allowed>>;
    using within = within_budget<tag, saved, budget>;
  };

  using norm_type = layer_norm_parameters<Space, Channels>;
  using up_type = linear_parameters<Space, Channels, Hidden>;
  using down_type = linear_parameters<Space, Hidden, Channels>;
  BOOST_HANA_DEFINE_STRUCT(self, (norm_type, norm), (up_type, fc1), (up_type, fc2),
                           (down_type, fc3));

  template <class Context>
  explicit transition(Context& ctx) : norm(ctx), fc1(ctx), fc2(ctx), fc3(ctx) {}

  struct kept {
    X x;
    statistics norm;
    std::int64_t bytes() const { return x.bytes() + norm.mean.bytes() + norm.rstd.bytes(); }
  };
  struct result {
    X y;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, X const& x) const {
    (void)sizeof(typename contract::within);
    result made{X(ctx, x.global()), {x.clone(), detail::statistics_for(ctx, x)}};
    run(ctx, x, made.saved.norm, made.y);
    return made;
  }
  /// The same y with nothing kept.
  template <class Context>
  X infer(Context& ctx, X const& x) const {
    X y(ctx, x.global());
    run(ctx, x, detail::statistics_for(ctx, x), y);
    return y;
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  template <class Context>
  Dx backward(Context& ctx, kept saved, Dx const& dy, gradients_of_t<self>& gradients) const {
    Dx dx(ctx, saved.x.global());
    local::run_rows(ctx,
                    local::swiglu_rows_backward<T>{
                        detail::normalised(saved.x, norm, saved.norm), Hidden, fc1.weight.data(),
                        fc2.weight.data(), fc3.weight.data(), dy.data(), dx.data(),
                        gradients.fc1.weight.data(), gradients.fc2.weight.data(),
                        gradients.fc3.weight.data(), detail::norm_gradients_of(gradients.norm)});
    return dx;
  }
  template <class Context, class Kept, class Got, class Gradients>
  Dx backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::dy>, Dx, Got>();
    __builtin_unreachable();
  }

 private:
  /// Fills the statistics and y.
  template <class Context>
  void run(Context& ctx, X const& x, statistics const& made, X& y) const {
    local::run_rows(ctx, local::swiglu_rows<T>{detail::normalised(x, norm, made), Hidden,
                                               fc1.weight.data(), fc2.weight.data(),
                                               fc3.weight.data(), accumulate_t<T>(1e-5), y.data()});
  }
};

}  // namespace dtm
