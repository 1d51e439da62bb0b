#pragma once
// From tensors and parameters to the operands of backend/fused_rows.hpp.

#include "dtm/backend/fused_rows.hpp"
#include "dtm/ops/layer_norm.hpp"

namespace dtm::detail {

template <class Norm>
auto norm_weights_of(Norm const& norm) {
  return local::norm_weights<typename Norm::vector_type::element_type>{norm.weight.data(),
                                                                       norm.bias.data()};
}

template <class Gradient>
auto norm_gradients_of(Gradient& gradient) {
  using A = typename std::remove_cvref_t<decltype(gradient.weight)>::element_type;
  return local::norm_gradients<A>{gradient.weight.data(), gradient.bias.data()};
}

template <class Context, any_tensor X>
layer_norm_statistics<X> statistics_for(Context& ctx, X const& x) {
  using type = typename layer_norm_statistics<X>::type;
  global_extents<X::rank - 1> positions;
  for (int d = 0; d + 1 < X::rank; ++d) positions[d] = x.global_extent(d);
  return {type(ctx, positions), type(ctx, positions)};
}

/// A forward operation fills the statistics that it is given, a backward one reads them.
template <class X>
auto pointers_to(layer_norm_statistics<X> const& made) {
  using A = accumulate_t<typename X::element_type>;
  return local::norm_statistics<A>{const_cast<A*>(made.mean.data()),
                                   const_cast<A*>(made.rstd.data())};
}

/// x [batch, ..., channels]: what lies between is positions. x is complete, and its channels whole.
template <any_tensor X, class Norm>
auto normalised(X const& x, Norm const& norm, layer_norm_statistics<X> const& made) {
  (void)sizeof(layer_norm_check<X, typename Norm::vector_type>);
  auto const held = x.to_local();
  std::int64_t positions = 1;
  for (int d = 1; d + 1 < X::rank; ++d) positions *= held.extent[d];
  return local::normalised_rows<typename X::element_type>{
      x.data(),         held.extent[0],        positions,
      last_channels<X>, norm_weights_of(norm), pointers_to(made)};
}

}  // namespace dtm::detail
