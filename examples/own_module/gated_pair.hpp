#pragma once
// A module of one's own: a pair from a single, gated by the column.
//
//   z[i,j] = a[i] * sigmoid(g[j]),   a = s Wa^T,   g = s Wg^T
//   da[i] = sum_j dz[i,j] * sigmoid(g[j]);   dg[j] = sigmoid'(g[j]) * sum_i dz[i,j] * a[i]
//   ds = da Wa + dg Wg
//
// s [batch, tokens, Cs] in row form, z [batch, tokens, tokens, Cz] in blocks. g goes to column form
// and dg back: one transpose each. Saves s and the column g. ds is a pending sum over the column
// axis, the cotangent of a replicated s.

#include <dtm/comm/begin.hpp>
#include <dtm/contract/contract.hpp>
#include <dtm/ops/elementwise.hpp>
#include <dtm/ops/linear.hpp>
#include <dtm/parameters/layers.hpp>

namespace example {

using namespace dtm;

struct gated_pair_tag {
  static constexpr char const* name = "gated_pair";
};

template <class Space, std::int64_t Cs, std::int64_t Cz>
struct gated_pair : module_base<Space> {
  using self = gated_pair;
  using tag = gated_pair_tag;
  template <class S>
  using in = gated_pair<S, Cs, Cz>;  // the same module in another role: its gradients
  using T = typename Space::element;
  using A = accumulate_t<T>;
  using S = single_tensor<Space, c<Cs>>;
  using Row = single_tensor<Space, c<Cz>>;
  using Column = single_column_tensor<Space, c<Cz>>;
  using Z = pair_tensor<Space, c<Cz>>;
  using across = transpose<row_axis<Space>, column_axis<Space>>;

  struct contract {
    using inputs = dtm::inputs<named<arg::s, S>>;
    using outputs = dtm::outputs<named<arg::z, Z>>;
    using forward = collectives<on_tensor<arg::column, across>>;
    using backward = collectives<on_tensor<arg::d_column, across>>;
    using saved = dtm::saved<named<arg::s, S>, named<arg::column, Column>>;
    using budget = single_budget<std::int64_t(sizeof(T)) * (Cs + Cz)>;
    using within = within_budget<tag, saved, budget>;
  };

  using projection = linear_parameters<Space, Cs, Cz>;
  BOOST_HANA_DEFINE_STRUCT(self, (projection, proj_a), (projection, proj_g));

  template <class Context>
  explicit gated_pair(Context& ctx) : proj_a(ctx), proj_g(ctx) {}

  struct kept {
    S s;
    Column g;
    std::int64_t bytes() const { return s.bytes() + g.bytes(); }
  };
  struct result {
    Z z;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, S const& s) const {
    (void)sizeof(typename contract::within);
    Row const g = linear(ctx, s, proj_g.weight);
    auto column = begin<across>(ctx, g, "column");
    Row const a = linear(ctx, s, proj_a.weight);  // while g is on its way
    kept saved{s.clone(), column.wait()};
    Z z(ctx, global_extents<4>{{s.global_extent(0), s.global_extent(1), s.global_extent(1), Cz}});
    auto const to = z.to_local();
    each(a.to_local(), std::as_const(saved.g).to_local(),
         [&](auto b, auto i, auto j, auto ch, A value, A open) {
           to(b, i, j, ch) = T(value * open);
         });
    return {std::move(z), std::move(saved)};
  }

  template <class Context>
  cotangent_t<S> backward(Context& ctx, kept saved, Z const& dz,
                          gradients_of_t<self>& gradients) const {
    Row const a = linear(ctx, saved.s, proj_a.weight);
    auto da = zeros<cotangent_t<Row>>(ctx, a.global());
    auto dg = zeros<cotangent_t<Column>>(ctx, saved.g.global());
    auto const from = dz.to_local();
    auto const d_row = da.to_local(), d_column = dg.to_local();
    each(a.to_local(), std::as_const(saved.g).to_local(),
         [&](auto b, auto i, auto j, auto ch, A value, A open) {
           A const upstream = A(from(b, i, j, ch));
           d_row(b, i, ch) += upstream * open;
           d_column(b, j, ch) += upstream * value * open * (1 - open);
         });
    auto const dg_row =
        apply<across>(ctx, dg, "d_column");  // terms over rows become terms over columns
    add_weight_gradient(ctx, da, saved.s, gradients.proj_a.weight);
    add_weight_gradient(ctx, dg_row, saved.s, gradients.proj_g.weight);
    auto ds = linear_backward_input(ctx, da, proj_a.weight);
    add_linear_backward_input(ctx, dg_row, proj_g.weight, ds);
    return ds;
  }

 private:
  /// visit(b, i, j, channel, a, sigmoid(g)) for every element of this rank's block.
  template <class Visit>
  static void each(view<T const, 3> a, view<T const, 3> g, Visit visit) {
    for (std::int64_t b = 0; b < a.extent[0]; ++b)
      for (std::int64_t i = 0; i < a.extent[1]; ++i)
        for (std::int64_t j = 0; j < g.extent[1]; ++j)
          for (std::int64_t ch = 0; ch < Cz; ++ch)
            visit(b, i, j, ch, A(a(b, i, ch)), kernels::sigmoid(A(g(b, j, ch))));
  }
};

}  // namespace example
