#pragma once
// A layout is a mesh, a global shape and one placement per mesh axis, in mesh order (law L1):
//
//   layout<mesh<dp, cp0, cp1>, shape<batch, tokens, tokens, c<128>>, shard<0>, shard<1>, shard<2>>
//
// Placements are canonical: one spelling a meaning. Two axes may shard one dimension; then the
// earlier axis of the mesh is the major one: coordinate (i, j) holds block i * P_minor + j.

#include <cstddef>
#include <type_traits>
#include <utility>

#include "dtm/core/mesh.hpp"
#include "dtm/core/placement.hpp"
#include "dtm/core/shape.hpp"

namespace dtm {

namespace detail {

template <class Placement, int Rank>
inline constexpr bool names_dimension_of = true;
template <int D, int Rank>
inline constexpr bool names_dimension_of<shard<D>, Rank> = D >= 0 && D < Rank;

}  // namespace detail

template <class Mesh, class Shape, class... Placement>
struct layout {
  using mesh_type = Mesh;
  using shape_type = Shape;
  static constexpr int rank = Shape::rank;

  template <int Axis>
  using placement_at = detail::pick_t<std::size_t(Axis), Placement...>;
  template <class Axis>
  using placement = placement_at<detail::checked_index<Mesh, Axis>::value>;

  /// Dimension that an axis shards, or -1; also -1 where the layout is refused above, so that one
  /// mistake is one error.
  static constexpr int sharded_by(int axis) {
    int const dimensions[] = {detail::shard_dimension<Placement>..., -1};
    int const dimension = axis < int(sizeof...(Placement)) ? dimensions[axis] : -1;
    return dimension < Shape::rank ? dimension : -1;
  }
  static constexpr bool any_partial = (detail::is_partial<Placement> || ...);
  static constexpr bool all_replicate = (detail::is_replicate<Placement> && ...);
  static constexpr bool all_partial = (std::is_same_v<Placement, partial<sum>> && ...);

  template <class NewShape>
  using with_shape = layout<Mesh, NewShape, Placement...>;
  template <class... NewPlacement>
  using with_placements = layout<Mesh, Shape, NewPlacement...>;

  // last, so that the members above exist beside the one error
  static_assert(sizeof...(Placement) == std::size_t(Mesh::rank),
                "dtm layout: one placement per mesh axis, in mesh order");
  static_assert((detail::is_placement<Placement> && ...),
                "dtm layout: a placement is shard<d>, replicate or partial<sum|max>");
  static_assert((detail::names_dimension_of<Placement, Shape::rank> && ...),
                "dtm layout: shard<d> names a dimension that the shape does not have");
  static_assert(!((std::is_same_v<Placement, partial<sum>> || ...) &&
                  (std::is_same_v<Placement, partial<max>> || ...)),
                "dtm layout: a sum and a maximum cannot both be pending, for their order matters");
};

namespace detail {

template <class Layout, class Axis, class New, class Indices>
struct place;
template <class Mesh, class Shape, class... P, class Axis, class New, std::size_t... I>
struct place<layout<Mesh, Shape, P...>, Axis, New, std::index_sequence<I...>> {
  using type =
      layout<Mesh, Shape, std::conditional_t<int(I) == Mesh::template index<Axis>(), New, P>...>;
};

// Unchanged for an axis that the mesh does not have.
template <class Layout, class Axis, class New>
using place_t =
    typename place<Layout, Axis, New,
                   std::make_index_sequence<std::size_t(Layout::mesh_type::rank)>>::type;
template <class Layout, class Axis, class New>
struct checked_place : checked_index<typename Layout::mesh_type, Axis> {
  using type = place_t<Layout, Axis, New>;
};

template <class Layout>
struct cotangent_layout;
template <class Mesh, class Shape, class... P>
struct cotangent_layout<layout<Mesh, Shape, P...>> {
  using type = layout<Mesh, Shape, typename cotangent_placement<P>::type...>;
};

template <class Layout, class NewShape, class Renumber>
struct reshape;
template <class Mesh, class Shape, class... P, class NewShape, class Renumber>
struct reshape<layout<Mesh, Shape, P...>, NewShape, Renumber> {
  using type = layout<Mesh, NewShape, typename renumber_placement<P, Renumber>::type...>;
};

template <int A, int B>
struct renumber_swap {
  static constexpr int map(int d) { return source_of_swap(d, A, B); }
};
template <int Erased>
struct renumber_erase {
  static constexpr int map(int d) { return d > Erased ? d - 1 : d; }
};
template <int Inserted>
struct renumber_insert {
  static constexpr int map(int d) { return d >= Inserted ? d + 1 : d; }
};

template <class Mesh, class Shape, class P, class Indices>
struct uniform;
template <class Mesh, class Shape, class P, std::size_t... I>
struct uniform<Mesh, Shape, P, std::index_sequence<I...>> {
  template <std::size_t>
  using same = P;
  using type = layout<Mesh, Shape, same<I>...>;
};

}  // namespace detail

/// The layout with one axis' placement replaced.
template <class Layout, class Axis, class New>
using with_placement_t = typename detail::checked_place<Layout, Axis, New>::type;

/// The same placement on every axis: uniform_layout_t<grid, shape<c<8>>, replicate>.
template <class Mesh, class Shape, class Placement>
using uniform_layout_t =
    typename detail::uniform<Mesh, Shape, Placement,
                             std::make_index_sequence<std::size_t(Mesh::rank)>>::type;

/// Swap two dimensions; shards are renumbered (law L3).
template <class Layout, int A, int B>
using swap_layout_t =
    typename detail::reshape<Layout, swap_dimensions_t<typename Layout::shape_type, A, B>,
                             detail::renumber_swap<A, B>>::type;

/// The last axis in mesh order that shards a dimension, or -1: the innermost, the only one that
/// may let go.
template <class Layout>
constexpr int innermost_axis(int dimension) {
  int found = -1;
  for (int axis = 0; axis < Layout::mesh_type::rank; ++axis)
    if (Layout::sharded_by(axis) == dimension) found = axis;
  return found;
}

}  // namespace dtm
