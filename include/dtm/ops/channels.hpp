#pragma once
// Between channels-last tiles [batch, i, j, C] and channel-first ones [batch, C, i, j]: what a
// product a channel reads. Local.

#include "dtm/kernels/channels.hpp"
#include "dtm/ops/elementwise.hpp"

namespace dtm {

namespace detail {

template <class X, int... Order>
struct permuted_channels {
  static_assert(X::rank == 4, "dtm channels_first: the operand is [batch, i, j, channels]");
  using type = with_layout_t<X, permuted_layout_t<typename X::layout_type, Order...>>;
};

}  // namespace detail

template <class X>
using channels_first_t = typename detail::permuted_channels<X, 0, 3, 1, 2>::type;
template <class Y>
using channels_last_t = typename detail::permuted_channels<Y, 0, 2, 3, 1>::type;

template <class Context, any_tensor X>
channels_first_t<X> channels_first(Context& ctx, X const& x) {
  channels_first_t<X> y(ctx, global_extents<4>{{x.global_extent(0), x.global_extent(3),
                                                x.global_extent(1), x.global_extent(2)}});
  auto const tile = x.to_local();
  local::for_each(ctx, y.size(),
                  kernels::transpose_matrices<typename X::element_type>{
                      x.data(), tile.extent[1] * tile.extent[2], tile.extent[3], y.data()});
  return y;
}

template <class Context, any_tensor Y>
channels_last_t<Y> channels_last(Context& ctx, Y const& y) {
  channels_last_t<Y> x(ctx, global_extents<4>{{y.global_extent(0), y.global_extent(2),
                                               y.global_extent(3), y.global_extent(1)}});
  auto const tile = x.to_local();
  local::for_each(ctx, y.size(),
                  kernels::transpose_matrices<typename Y::element_type>{
                      y.data(), tile.extent[3], tile.extent[1] * tile.extent[2], x.data()});
  return x;
}

}  // namespace dtm
