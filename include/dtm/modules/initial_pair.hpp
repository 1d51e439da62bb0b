#pragma once
// The initial pair representation, an outer sum of two projections of the single one.
//
//   z[i,j] = W1 s[i] + W2 s[j]
//
// s [batch, tokens, Cs] in row form (the same on every cp1); z pair-placed. Forward: the column
// projection is transposed from row to column form, B N Cz / (D P1) elements at most per rank.
// Backward: the row part needs no message, the column part goes back by the adjoint transposition;
// ds is partial on the column axis, the cotangent of a replicated s. Saves s. Parameter gradients
// add, ds is assigned. Source: Boltz-2 model/models/boltz2.py, z_init_1 and z_init_2.

#include <utility>

#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/ops/linear.hpp"
#include "dtm/ops/outer.hpp"
#include "dtm/parameters/layers.hpp"

namespace dtm {

namespace module {
struct initial_pair {
  static constexpr char const* name = "initial_pair";
};
}  // namespace module

template <class Space, std::int64_t Cs, std::int64_t Cz>
struct initial_pair : module_base<Space> {
  using self = initial_pair;
  using tag = module::initial_pair;
  static constexpr bool without_name = true;  // z_init_1 and z_init_2 are the model's own members
  template <class S>
  using in = initial_pair<S, Cs, Cz>;
  using T = typename Space::element;
  using S = single_tensor<Space, c<Cs>>;
  using Ds = cotangent_t<S>;
  using Z = pair_tensor<Space, c<Cz>>;
  using across = transpose<row_axis<Space>, column_axis<Space>>;

  struct contract {
    using inputs = dtm::inputs<named<arg::s, S>>;
    using outputs = dtm::outputs<named<arg::z, Z>>;
    using forward = collectives<on_tensor<arg::column, across>>;
    using backward = collectives<on_tensor<arg::d_column, across>>;
    using saved = dtm::saved<named<arg::s, S>>;
    using budget = single_budget<std::int64_t(sizeof(T)) * Cs>;
    using within = within_budget<tag, saved, budget>;
  };

  using projection = linear_parameters<Space, Cs, Cz>;
  BOOST_HANA_DEFINE_STRUCT(self, (projection, z_init_1), (projection, z_init_2));

  template <class Context>
  explicit initial_pair(Context& ctx) : z_init_1(ctx), z_init_2(ctx) {}

  struct kept {
    S s;
    std::int64_t bytes() const { return s.bytes(); }
  };
  struct result {
    Z y;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, S const& s) const {
    (void)sizeof(typename contract::within);
    auto const own_column = linear(ctx, s, z_init_2.weight);
    auto column = begin<across>(ctx, own_column, "column");
    auto const row = linear(ctx, s, z_init_1.weight);
    return {outer_sum(ctx, row, column.wait()), {s.clone()}};
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  template <class Context>
  Ds backward(Context& ctx, kept saved, Z const& dz, gradients_of_t<self>& gradients) const {
    auto const d_column = sum_over<1>(ctx, dz);  // [b, j, Cz]: partial on rows, shard on columns
    auto returning = begin<across>(ctx, d_column, "d_column");
    auto const d_row = sum_over<2>(ctx, dz);  // [b, i, Cz]: shard on rows, partial on columns
    add_weight_gradient(ctx, d_row, saved.s, gradients.z_init_1.weight);
    auto ds = linear_backward_input(ctx, d_row, z_init_1.weight);
    auto const d_own = returning.wait();
    add_weight_gradient(ctx, d_own, saved.s, gradients.z_init_2.weight);
    add_linear_backward_input(ctx, d_own, z_init_2.weight, ds);
    return ds;
  }
  template <class Context, class Kept, class Got, class Gradients>
  Ds backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::dz>, Z, Got>();
    __builtin_unreachable();
  }
};

}  // namespace dtm
