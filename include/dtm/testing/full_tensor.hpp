#pragma once
// The whole of a sharded tensor on every rank: for tests only, nothing in the library may gather
// like this.
//
//   complete(ctx, x)       pending sums and maxima are reduced; gradients are compared after it (L5)
//   full_tensor(ctx, x)    all tiles in one array; ranks that should hold the same tile are compared
//                          bit for bit

#include <cstring>
#include <source_location>
#include <string>
#include <vector>

#include "dtm/backend/context.hpp"
#include "dtm/comm/exchange.hpp"
#include "dtm/core/host_copy.hpp"
#include "dtm/serial/array.hpp"

namespace dtm::testing {

/// The group that the harness itself talks over: every rank of the mesh, whatever the context says
/// of along_all.
template <class Context>
auto& everyone(Context& ctx) {
  return ctx.groups().along((1u << Context::mesh_type::rank) - 1u);
}

namespace detail {

template <class P>
struct completed_placement {
  using type = std::conditional_t<dtm::detail::is_partial<P>, replicate, P>;
};
template <class Layout>
struct completed_layout;
template <class Mesh, class Shape, class... P>
struct completed_layout<layout<Mesh, Shape, P...>> {
  using type = layout<Mesh, Shape, typename completed_placement<P>::type...>;
  static constexpr bool maximum = (std::is_same_v<P, partial<dtm::max>> || ...);
  static constexpr unsigned mask() {
    unsigned bits = 0, axis = 0;
    ((bits |= unsigned(dtm::detail::is_partial<P>) << axis++), ...);
    return bits;
  }
};

}  // namespace detail

/// The type of complete(ctx, x): no axis is partial, elements are accumulate_t.
template <class X>
using completed_t = tensor<accumulate_t<typename X::element_type>,
                           typename detail::completed_layout<typename X::layout_type>::type,
                           typename X::device_type>;

/// Reduces over every axis on which x is partial.
template <class Context, any_tensor X>
completed_t<X> complete(Context& ctx, X const& x) {
  using completed = detail::completed_layout<typename X::layout_type>;
  using A = accumulate_t<typename X::element_type>;
  completed_t<X> result(ctx, x.global());
  auto const terms = on_host(x);
  std::vector<A> values;
  for (auto const term : terms) values.push_back(A(term));
  if constexpr (completed::mask() != 0)
    ctx.groups()
        .along(completed::mask())
        .all_reduce(values.data(), values.data(), result.size(),
                    completed::maximum ? comm::reduction::max : comm::reduction::sum,
                    comm::call{"all_reduce", "complete", 0, comm::call_site::current()})
        .wait();
  result.copy_from_host(values.data());
  return result;
}

/// All elements of a tensor, and the ranks whose tile differs from the one that the lowest rank
/// holds of it.
template <class V>
struct gathered {
  serial::array<V> values;
  std::vector<int> deviating;
};

/// Real elements come as double, whole numbers as int64.
template <class X>
using gathered_element =
    std::conditional_t<floating_element<typename X::element_type>, double, std::int64_t>;

template <class Context, any_tensor X>
gathered<gathered_element<X>> gather(Context& ctx, X const& x) {
  using layout_type = typename X::layout_type;
  using mesh_type = typename X::mesh_type;
  using V = gathered_element<X>;
  static_assert(!layout_type::any_partial,
                "dtm testing: only complete tensors are gathered; complete(ctx, x) first");
  auto const& here = ctx.where();
  comm::peers<mesh_type> const all{here, (1u << mesh_type::rank) - 1u};
  std::vector<typename X::element_type> tiles(std::size_t(x.size() * all.count()));
  everyone(ctx)
      .all_gather(on_host(x).data(), tiles.data(), x.size(),
                  comm::call{"all_gather", "full_tensor", 0, comm::call_site::current()})
      .wait();

  gathered<V> result;
  for (int d = 0; d < X::rank; ++d) result.values.extents.push_back(x.global_extent(d));
  box<X::rank> whole;
  for (int d = 0; d < X::rank; ++d) whole.end[d] = x.global_extent(d);
  std::vector<typename X::element_type> ordered(std::size_t(whole.size()));
  for (int rank = 0; rank < all.count(); ++rank) {
    int there[mesh_type::rank];
    all.coordinates(rank, there);
    int first = 0;  // the lowest rank that holds this tile
    for (int axis = 0; axis < mesh_type::rank; ++axis)
      first = first * here.sizes[axis] + (layout_type::sharded_by(axis) >= 0 ? there[axis] : 0);
    auto const* const tile = tiles.data() + rank * x.size();
    auto const* const reference = tiles.data() + first * x.size();
    if (std::memcmp(tile, reference, std::size_t(x.size()) * sizeof *tile) != 0)
      result.deviating.push_back(rank);
    if (rank == first)
      comm::unpack(tile, ordered.data(), whole,
                   tile_of<layout_type>(x.global(), here.sizes, there));
  }
  result.values.values.reserve(ordered.size());
  for (auto const value : ordered) result.values.values.push_back(V(value));
  return result;
}

/// All elements of a tensor on every rank. Throws replication_error where replicas differ by a bit.
template <class Context, any_tensor X>
serial::array<gathered_element<X>> full_tensor(Context& ctx, X const& x) {
  auto result = gather(ctx, x);
  if (!result.deviating.empty())
    throw replication_error("dtm testing: full_tensor: the tile of rank " +
                            std::to_string(result.deviating.front()) + " differs from its replica");
  return std::move(result.values);
}

}  // namespace dtm::testing
