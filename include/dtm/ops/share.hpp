#pragma once
// Between complete values and pending sums (law L5).
//
//   share<axes...>(ctx, dx)     replicate -> partial<sum>: coordinate 0 keeps the value, others hold 0.
//                               How a complete gradient enters a backward pass. No communication.
//   complete(ctx, dx)           partial<sum> -> replicate on every axis that is partial, one all_reduce: how a test or a
//                               caller outside the library reads a cotangent.

#include "dtm/comm/begin.hpp"
#include "dtm/ops/elementwise.hpp"

namespace dtm {

namespace contract {
template <class Axis, class Got>
struct share_needs_replicate {
  static_assert(dtm::detail::false_for<Axis, Got>,
                "dtm contract: share<Axis> takes a value that is replicated on the axis; Axis and "
                "Got stand in the line that names share_needs_replicate");
};
}  // namespace contract

namespace detail {

template <class Layout, class... Axis>
struct shared_layout {
  using type = Layout;
};
template <class Layout, class First, class... Rest>
struct shared_layout<Layout, First, Rest...>
    : shared_layout<place_t<Layout, First, partial<sum>>, Rest...> {};

template <class Layout, class Indices>
struct completion;
template <class Mesh, class Shape, class... P, std::size_t... I>
struct completion<layout<Mesh, Shape, P...>, std::index_sequence<I...>> {
  static constexpr int pending = (0 + ... + int(is_partial<P>));
  // all_reduce over the partial axes, in mesh order
  template <class List, class... Rest>
  struct collect {
    using type = List;
  };
  template <class... Axis, class Next, class... Rest>
  struct collect<all_reduce<Axis...>, Next, Rest...>
      : collect<std::conditional_t<is_partial<placement_on_t<layout<Mesh, Shape, P...>, Next>>,
                                   all_reduce<Axis..., Next>, all_reduce<Axis...>>,
                Rest...> {};
  using type = typename collect<all_reduce<>, typename Mesh::template axis_at<int(I)>...>::type;
};

template <class X>
using completion_of = completion<typename X::layout_type, axis_indices<typename X::layout_type>>;

}  // namespace detail

template <class... Axis, class Context, any_tensor X>
with_layout_t<X, typename detail::shared_layout<typename X::layout_type, Axis...>::type> share(
    Context& ctx, X x) {
  using layout_type = typename X::layout_type;
  (void)sizeof(
      detail::first_error<detail::unless<
          detail::is_replicate<detail::placement_on_t<layout_type, Axis>>,
          contract::share_needs_replicate<Axis, detail::placement_on_t<layout_type, Axis>>>...>);
  using result_type = with_layout_t<X, typename detail::shared_layout<layout_type, Axis...>::type>;
  if (((ctx.template coordinate<Axis>() != 0) || ...))
    local::for_each(ctx, x.size(), kernels::set_zero<typename X::element_type>{x.data()});
  auto const global = x.global();
  return std::move(x).template relabel<result_type>(global);
}

/// The value behind a pending sum; a tensor that is complete is returned as it is.
template <class Context, any_tensor X>
auto complete(Context& ctx, X x) {
  if constexpr (detail::completion_of<X>::pending == 0)
    return x;
  else
    return apply<typename detail::completion_of<X>::type>(ctx, x, "complete");
}

}  // namespace dtm
