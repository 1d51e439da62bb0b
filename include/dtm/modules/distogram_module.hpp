#pragma once
// Distogram head: logits over distance bins of the symmetrised pair.
//
//   logits = (z + z^T) W^T + b, the last dimension split as (Distograms, Bins), bins fastest
//
// z, logits pair-placed. z^T goes to the rank that holds the mirrored tile: one transposition of
// the tile forward, one of the same size backward. Saves z + z^T. Parameter gradients add, dz is
// assigned. Source: Boltz-2 model/modules/trunkv2.py (DistogramModule).

#include <utility>

#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/ops/elementwise.hpp"
#include "dtm/ops/linear.hpp"
#include "dtm/parameters/layers.hpp"

namespace dtm {

namespace module {
struct distogram_module {
  static constexpr char const* name = "distogram_module";
};
}  // namespace module

template <class Space, std::int64_t C, std::int64_t Bins = 64, std::int64_t Distograms = 1>
struct distogram_module : module_base<Space> {
  using self = distogram_module;
  using tag = module::distogram_module;
  template <class S>
  using in = distogram_module<S, C, Bins, Distograms>;
  using T = typename Space::element;
  using Z = pair_tensor<Space, c<C>>;
  using Logits = pair_tensor<Space, c<Distograms>, c<Bins>>;
  using across = transpose<row_axis<Space>, column_axis<Space>>;

  struct contract {
    using inputs = dtm::inputs<named<arg::z, Z>>;
    using outputs = dtm::outputs<named<arg::logits, Logits>>;
    using forward = collectives<on_tensor<arg::z_transposed, across>>;
    using backward = collectives<on_tensor<arg::dz_transposed, across>>;
    using saved = dtm::saved<named<arg::z, Z>>;
    using budget = pair_budget<std::int64_t(sizeof(T)) * C>;
    using within = within_budget<tag, saved, budget>;
  };

  using head_type = linear_with_bias_parameters<Space, C, Distograms * Bins>;
  BOOST_HANA_DEFINE_STRUCT(self, (head_type, distogram));

  template <class Context>
  explicit distogram_module(Context& ctx) : distogram(ctx) {}

  struct kept {
    Z symmetric;
    std::int64_t bytes() const { return symmetric.bytes(); }
  };
  struct result {
    Logits y;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, Z const& z) const {
    (void)sizeof(typename contract::within);
    auto symmetric = plus_transposed(ctx, z, "z_transposed");
    auto logits = linear(ctx, symmetric, distogram.weight);
    add_bias(ctx, distogram.bias, logits);
    return {split_last<Distograms, Bins>(ctx, std::move(logits)), {std::move(symmetric)}};
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  template <class Context>
  Z backward(Context& ctx, kept saved, Logits const& d_logits,
             gradients_of_t<self>& gradients) const {
    auto const flat = merge_last(ctx, d_logits.clone());
    add_weight_gradient(ctx, flat, saved.symmetric, gradients.distogram.weight);
    add_bias_gradient(ctx, flat, gradients.distogram.bias);
    return plus_transposed(ctx, linear_backward_input(ctx, flat, distogram.weight),
                           "dz_transposed");
  }
  template <class Context, class Kept, class Got, class Gradients>
  Z backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::d_logits>, Logits, Got>();
    __builtin_unreachable();
  }

 private:
  // x + x^T; its own adjoint.
  template <class Context>
  static Z plus_transposed(Context& ctx, Z const& x, char const* name) {
    auto sum = swap_dimensions<1, 2>(ctx, apply<across>(ctx, x, name));
    add_into(ctx, x, sum);
    return sum;
  }
};

}  // namespace dtm
