#pragma once
// Typed local primitives without parameters: copies, sums, permutations, gates. Shapes and
// placements of results are derived from the operands' types; nothing communicates.

#include <cstdint>
#include <utility>

#include "dtm/backend/local.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/kernels/elementwise.hpp"

namespace dtm {

/// Zeros of a given tensor type. Extents from another tensor or from bind<...>.
template <class Tensor, class Context, class Extents>
Tensor zeros(Context& ctx, Extents const& bound) {
  Tensor result(ctx, bound);
  local::for_each(ctx, result.size(),
                  kernels::set_zero<typename Tensor::element_type>{result.data()});
  return result;
}

/// y += x; equal types. Partial terms add to each other (law L5).
template <class Context, any_tensor X, any_tensor Y>
void add_into(Context& ctx, X const& x, Y& y) {
  using check = detail::first_error<detail::same_check<at<operation::add, operand::right>, Y, X>,
                                    detail::linear_check<operation::add, Y>>;
  (void)sizeof(check);
  if constexpr (detail::holds<check>)
    local::for_each(ctx, y.size(), kernels::add<typename Y::element_type>{x.data(), y.data()});
}

/// The sum of two terms; reuses the storage of the first.
template <class Context, any_tensor X, any_tensor Y>
X add(Context& ctx, X x, Y const& y) {
  add_into(ctx, y, x);
  return x;
}

/// y *= factor; linear, so terms of a sum stay terms. A pending maximum is refused: a negative
/// factor would turn it around.
template <class Context, any_tensor Y>
void scale(Context& ctx, accumulate_t<typename Y::element_type> factor, Y& y) {
  using check = detail::linear_check<operation::scale, Y>;
  (void)sizeof(check);
  local::for_each(ctx, y.size(), kernels::scale<typename Y::element_type>{factor, y.data()});
}

/// The same values in another element type: the only way between types (law L11).
template <class T, class Context, any_tensor X>
with_element_t<X, T> cast(Context& ctx, X const& x) {
  with_element_t<X, T> result(ctx, x.global());
  local::for_each(ctx, x.size(),
                  kernels::convert<typename X::element_type, T>{x.data(), result.data()});
  return result;
}

namespace detail {

template <int Rank, int... Order>
constexpr bool is_permutation() {
  unsigned seen = 0;
  ((seen |= Order >= 0 && Order < Rank ? 1u << Order : 0u), ...);
  return int(sizeof...(Order)) == Rank && seen == (1u << Rank) - 1;
}

// Of a wrong order: the shape itself; permute says what is wrong.
template <class Shape, int... Order>
struct permuted_shape;
template <class... D, int... Order>
struct permuted_shape<shape<D...>, Order...> {
  static constexpr bool valid = is_permutation<int(sizeof...(D)), Order...>();
  template <int At>
  using source = pick_t<std::size_t(valid ? At : 0), D...>;
  using type = std::conditional_t<valid, shape<source<Order>...>, shape<D...>>;
};

template <int... Order>
struct renumber_permute {
  static constexpr int map(int old) {
    int position = 0, found = 0;
    ((Order == old ? void(found = position) : void(), ++position), ...);
    return found;
  }
};

template <class Layout, int... Order>
using permuted_layout_t =
    typename reshape<Layout, typename permuted_shape<typename Layout::shape_type, Order...>::type,
                     renumber_permute<Order...>>::type;

}  // namespace detail

/// Dimension d of the result is dimension Order[d] of x; shards are renumbered.
template <int... Order, class Context, any_tensor X>
with_layout_t<X, detail::permuted_layout_t<typename X::layout_type, Order...>> permute(Context& ctx,
                                                                                       X const& x) {
  using result_type =
      with_layout_t<X, detail::permuted_layout_t<typename X::layout_type, Order...>>;
  static_assert(detail::is_permutation<X::rank, Order...>(),
                "dtm permute: the positions are a permutation of the dimensions");
  constexpr int order[] = {Order...};
  global_extents<X::rank> global;
  for (int d = 0; d < X::rank; ++d) global[d] = x.global_extent(order[d]);
  result_type result(ctx, global);
  auto const from = x.to_local();
  kernels::permute<typename X::element_type, X::rank> kernel{};
  kernel.x = x.data();
  kernel.y = result.data();
  for (int d = 0; d < X::rank; ++d) {
    kernel.extent[d] = from.extent[order[d]];
    kernel.stride[d] = from.inner(order[d]);
  }
  local::for_each(ctx, result.size(), kernel);
  return result;
}

/// Swaps two dimensions of the tile (no communication): z[b, i, j, c] of (shard<1>, shard<2>)
/// becomes (shard<2>, shard<1>).
template <int A, int B, class Context, any_tensor X>
with_layout_t<X, swap_layout_t<typename X::layout_type, A, B>> swap_dimensions(Context& ctx,
                                                                               X const& x) {
  return [&]<int... D>(std::integer_sequence<int, D...>) {
    return permute<detail::source_of_swap(D, A, B)...>(ctx, x);
  }
  (std::make_integer_sequence<int, X::rank>{});
}

/// Sum over a dimension; partial on the axes that shard it.
template <int Dimension, class Context, any_tensor X>
auto sum_over(Context& ctx, X const& x) {
  (void)sizeof(detail::linear_check<operation::sum, X>);
  using result_type = with_layout_t<X, sum_layout_t<typename X::layout_type, Dimension>>;
  global_extents<result_type::rank> global;
  for (int d = 0; d < result_type::rank; ++d)
    global[d] = x.global_extent(d < Dimension ? d : d + 1);
  result_type result(ctx, global);
  auto const from = x.to_local();
  local::for_each(ctx, result.size(),
                  kernels::sum_middle<typename X::element_type>{
                      x.data(), from.extent[Dimension], from.inner(Dimension), result.data()});
  return result;
}

/// Splits the last dimension c<A * B> into c<A>, c<B>; the tile is the same memory.
template <std::int64_t A, std::int64_t B, class Context, any_tensor X>
auto split_last(Context&, X&& x) {
  using source = std::remove_cvref_t<X>;
  using shape_type = typename source::shape_type;
  constexpr int last = source::rank - 1;
  static_assert(!std::is_lvalue_reference_v<X>,
                "dtm split_last: pass std::move(x); the tile changes its owner");
  static_assert(std::is_same_v<dimension_t<shape_type, last>, c<A * B>>,
                "dtm split_last: the last dimension is not c<A * B>");
  using result_shape =
      insert_dimension_t<replace_dimension_t<shape_type, last, c<A>>, last + 1, c<B>>;
  using result_type =
      with_layout_t<source, typename source::layout_type::template with_shape<result_shape>>;
  global_extents<source::rank + 1> global;
  for (int d = 0; d < last; ++d) global[d] = x.global_extent(d);
  return std::move(x).template relabel<result_type>(global);
}

/// Merges the last two dimensions c<A>, c<B> into c<A * B>; the tile is the same memory.
template <class Context, any_tensor X>
auto merge_last(Context&, X&& x) {
  using source = std::remove_cvref_t<X>;
  using shape_type = typename source::shape_type;
  constexpr int last = source::rank - 1;
  static_assert(!std::is_lvalue_reference_v<X>,
                "dtm merge_last: pass std::move(x); the tile changes its owner");
  constexpr bool channels = detail::is_channel_extent<dimension_t<shape_type, last>> &&
                            detail::is_channel_extent<dimension_t<shape_type, last - 1>>;
  static_assert(channels, "dtm merge_last: the last two dimensions are not both channels");
  using merged = c<channels ? dimension_t<shape_type, last>::static_extent *
                                  dimension_t<shape_type, last - 1>::static_extent
                            : 1>;
  require_whole<operation::permute, source, last>();
  require_whole<operation::permute, source, last - 1>();
  using result_shape = erase_dimension_t<replace_dimension_t<shape_type, last - 1, merged>, last>;
  using result_type =
      with_layout_t<source, typename source::layout_type::template with_shape<result_shape>>;
  global_extents<source::rank - 1> global;
  for (int d = 0; d + 1 < last; ++d) global[d] = x.global_extent(d);
  return std::move(x).template relabel<result_type>(global);
}

/// y = x * sigmoid(g).
template <class Context, any_tensor X, any_tensor G>
X gate(Context& ctx, X const& x, G const& g) {
  using check = detail::first_error<detail::same_check<at<operation::gate, operand::right>, X, G>,
                                    detail::complete_check<operation::gate, X>>;
  (void)sizeof(check);
  X y(ctx, x.global());
  if constexpr (detail::holds<check>)
    local::for_each(ctx, y.size(),
                    kernels::gate<typename X::element_type>{x.data(), g.data(), y.data()});
  return y;
}

}  // namespace dtm
