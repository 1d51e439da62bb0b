#pragma once
// Dropout of whole rows or columns of a pair's update: a factor for each (sample, row), shared along
// the row and the channels, or for each (sample, column). Factors are 1 / (1 - rate) or 0, functions of
// what is drawn and of the index in [batch, tokens] (law L12): every mesh draws the serial ones, ranks
// that share a row agree without a message, and a layer that is computed again draws the same.
//
//   draw_factors<row_factors<Space>>(ctx, rate, draw, global)   drawn
//   factors_of(ctx, rate, uniform)                              of given numbers in [0, 1)
//   add_scaled(ctx, factors, update, z)                         z += factor update
//   scaled(ctx, factors, dz)                                    factor dz, the cotangent of update
//
// No communication. Source: Boltz-2 model/layers/dropout.py (get_dropout_mask); serial/dropout.hpp.

#include <string>
#include <type_traits>

#include "dtm/backend/local.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/core/space.hpp"
#include "dtm/kernels/dropout.hpp"

namespace dtm {

/// [batch, tokens]: rows over cp0, the same on every cp1, and columns over cp1.
template <class Space>
using row_factors = with_element_t<single_tensor<Space>, accumulate_t<typename Space::element>>;
template <class Space>
using column_factors =
    with_element_t<single_column_tensor<Space>, accumulate_t<typename Space::element>>;

namespace detail {

/// Throws argument_error unless 0 <= rate < 1; a rate is the same on all ranks.
inline kernels::dropout_rule dropout_rule_of(double rate) {
  if (!(rate >= 0 && rate < 1))
    throw argument_error(
        "dtm dropout: the rate is " + std::to_string(rate) +
        "; it must be at least 0 and below 1, for what is kept is divided by 1 - rate");
  return {rate};
}

template <bool Add, class Context, any_tensor Factors, any_tensor X, any_tensor Y>
void scale_pairs_by(Context& ctx, Factors const& factors, X const& x, Y& y) {
  using T = typename X::element_type;
  using layout_type = typename X::layout_type;
  static_assert(
      std::is_same_v<X, Y> && layout_type::sharded_by(1) == 1 && layout_type::sharded_by(2) == 2,
      "dtm dropout: update and result are one type of pair, rows over the second axis of the "
      "mesh and columns over the third");
  constexpr bool of_columns = Factors::layout_type::sharded_by(2) == 1;
  static_assert(of_columns != (Factors::layout_type::sharded_by(1) == 1),
                "dtm dropout: factors are row_factors or column_factors");
  auto const tile = x.to_local();
  std::int64_t const pairs = tile.extent[0] * tile.extent[1] * tile.extent[2];
  local::for_each(ctx, pairs,
                  kernels::scale_pairs<T, Add>{{{tile.extent[1], tile.extent[2], of_columns},
                                                pairs > 0 ? x.size() / pairs : 1,
                                                factors.data(),
                                                x.data(),
                                                y.data()}});
}

}  // namespace detail

template <class Factors, class Context>
Factors draw_factors(Context& ctx, double rate, kernels::dropout_draw const& draw,
                     global_extents<2> const& global) {
  auto const rule = detail::dropout_rule_of(rate);
  Factors factors(ctx, global);
  box<2> whole{};
  for (int d = 0; d < 2; ++d) whole.end[d] = global[d];
  local::for_each(
      ctx, factors.size(),
      kernels::draw_dropout_factors<typename Factors::element_type>{
          draw.stream(), rule, kernels::box_walk<2>::of(whole, factors.tile()), factors.data()});
  return factors;
}

template <class Context, any_tensor Uniform>
Uniform factors_of(Context& ctx, double rate, Uniform const& uniform) {
  auto const rule = detail::dropout_rule_of(rate);
  Uniform factors(ctx, uniform.global());
  local::for_each(ctx, factors.size(),
                  kernels::dropout_factors_of<typename Uniform::element_type>{rule, uniform.data(),
                                                                              factors.data()});
  return factors;
}

/// z += factor update, the sum formed in accumulate_t.
template <class Context, any_tensor Factors, any_tensor X>
void add_scaled(Context& ctx, Factors const& factors, X const& update, X& z) {
  detail::scale_pairs_by<true>(ctx, factors, update, z);
}
template <class Context, any_tensor Factors, any_tensor X>
X scaled(Context& ctx, Factors const& factors, X const& dz) {
  X result(ctx, dz.global());
  detail::scale_pairs_by<false>(ctx, factors, dz, result);
  return result;
}

}  // namespace dtm
