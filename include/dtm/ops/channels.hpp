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

}  // namespace dtm
