#pragma once
// Layer normalisation over the last dimension, which must be whole on each rank; eps = 1e-5,
// biased variance.
//
//   mu = mean x;  r = 1 / sqrt(mean (x - mu)^2 + eps);  y = gamma (x - mu) r + beta
//   g = gamma dy; dx = r (g - mean g - xh mean(g xh)),  xh = (x - mu) r;  dgamma = sum dy xh;  dbeta = sum dy
//
// Statistics are accumulate_t, one pair a position, and are kept for backward instead of y. No
// communication. Source: torch.nn.LayerNorm.

#include "dtm/ops/linear.hpp"

namespace dtm {

/// Mean and reciprocal deviation of each position: the operand's layout without its last dimension.
template <class X>
struct layer_norm_statistics {
  using type = tensor<accumulate_t<typename X::element_type>,
                      sum_layout_t<typename X::layout_type, X::rank - 1>, typename X::device_type>;
  type mean, rstd;
};

template <class X>
struct layer_norm_result {
  X y;
  layer_norm_statistics<X> statistics;
};

namespace detail {

template <class X, class Gamma>
using layer_norm_check =
    first_error<complete_check<operation::layer_norm, X>,
                map_check<operation::layer_norm, X, Gamma,
                          dimension_t<typename Gamma::shape_type, 0>::static_extent>>;

template <class X>
inline constexpr std::int64_t last_channels =
    dimension_t<typename X::shape_type, X::rank - 1>::static_extent;

}  // namespace detail

template <class Context, any_tensor X, any_tensor Gamma>
layer_norm_result<X> layer_norm_forward(Context& ctx, X const& x, Gamma const& gamma,
                                        Gamma const& beta) {
  using check = detail::layer_norm_check<X, Gamma>;
  (void)sizeof(check);
  using A = accumulate_t<typename X::element_type>;
  using statistics_type = typename layer_norm_statistics<X>::type;
  global_extents<X::rank - 1> positions;
  for (int d = 0; d + 1 < X::rank; ++d) positions[d] = x.global_extent(d);
  layer_norm_result<X> result{X(ctx, x.global()),
                              {statistics_type(ctx, positions), statistics_type(ctx, positions)}};
  if constexpr (detail::holds<check>)
    local::layer_norm_forward(ctx, detail::rows_of(x), detail::last_channels<X>, A(1e-5), x.data(),
                              gamma.data(), beta.data(), result.y.data(),
                              result.statistics.mean.data(), result.statistics.rstd.data());
  return result;
}

/// y again, from kept statistics.
template <class Context, any_tensor X, any_tensor Gamma>
X layer_norm_again(Context& ctx, X const& x, layer_norm_statistics<X> const& statistics,
                   Gamma const& gamma, Gamma const& beta) {
  using check = detail::layer_norm_check<X, Gamma>;
  (void)sizeof(check);
  X y(ctx, x.global());
  if constexpr (detail::holds<check>)
    local::layer_norm_apply(ctx, detail::rows_of(x), detail::last_channels<X>, x.data(),
                            statistics.mean.data(), statistics.rstd.data(), gamma.data(),
                            beta.data(), y.data());
  return y;
}

/// dx; the gradients of gamma and beta are added.
template <class Context, any_tensor Dy, any_tensor X, any_tensor Gamma, any_tensor Gradient>
Dy layer_norm_backward(Context& ctx, Dy const& dy, X const& x,
                       layer_norm_statistics<X> const& statistics, Gamma const& gamma,
                       Gradient& dgamma, Gradient& dbeta) {
  using check = detail::first_error<
      detail::layer_norm_check<X, Gamma>,
      detail::same_check<at<operation::layer_norm, operand::right>, cotangent_t<X>, Dy>,
      detail::gradient_check<Dy, X, Gradient>>;
  (void)sizeof(check);
  Dy dx(ctx, dy.global());
  if constexpr (detail::holds<check>)
    local::layer_norm_backward(ctx, detail::rows_of(x), detail::last_channels<X>, dy.data(),
                               x.data(), statistics.mean.data(), statistics.rstd.data(),
                               gamma.data(), dx.data(), dgamma.data(), dbeta.data());
  return dx;
}

}  // namespace dtm
