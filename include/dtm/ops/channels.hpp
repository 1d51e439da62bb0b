#pragma once
// Between channels-last tiles [batch, i, j, C] and channel-first ones [batch, C, i, j]: what a
// product a channel reads. `First` picks a range of the last dimension, so that one half of a
// doubled projection moves alone. Local.

#include "dtm/kernels/channels.hpp"
#include "dtm/ops/elementwise.hpp"

namespace dtm {

namespace detail {

template <class X, std::int64_t Channels>
struct channels_first_of {
  static_assert(X::rank == 4, "dtm channels_first: the operand is [batch, i, j, channels]");
  using permuted = permuted_layout_t<typename X::layout_type, 0, 3, 1, 2>;
  using type =
      with_layout_t<X, typename permuted::template with_shape<
                           replace_dimension_t<typename permuted::shape_type, 1, c<Channels>>>>;
};

}  // namespace detail

/// Channels [First, First + Channels) of x, channel first.
template <std::int64_t First, std::int64_t Channels, class Context, any_tensor X>
typename detail::channels_first_of<X, Channels>::type channels_first(Context& ctx, X const& x) {
  using result_type = typename detail::channels_first_of<X, Channels>::type;
  constexpr std::int64_t all = dimension_t<typename X::shape_type, 3>::static_extent;
  static_assert(First >= 0 && First + Channels <= all,
                "dtm channels_first: the range lies outside the channels");
  result_type y(ctx, global_extents<4>{
                         {x.global_extent(0), Channels, x.global_extent(1), x.global_extent(2)}});
  auto const tile = x.to_local();
  local::for_each(ctx, y.size(),
                  kernels::channels_to_front<typename X::element_type>{
                      x.data(), tile.extent[1] * tile.extent[2], all, First, Channels, y.data()});
  return y;
}

/// Writes a channel-first tile into channels [First, First + Channels) of x.
template <std::int64_t First, std::int64_t Channels, class Context, any_tensor Y, any_tensor X>
void channels_last_into(Context& ctx, Y const& y, X& x) {
  require_same<operation::permute, typename detail::channels_first_of<X, Channels>::type, Y>();
  constexpr std::int64_t all = dimension_t<typename X::shape_type, 3>::static_extent;
  static_assert(First >= 0 && First + Channels <= all,
                "dtm channels_last: the range lies outside the channels");
  auto const tile = x.to_local();
  local::for_each(ctx, y.size(),
                  kernels::channels_to_back<typename X::element_type>{
                      y.data(), tile.extent[1] * tile.extent[2], all, First, Channels, x.data()});
}

}  // namespace dtm
