#pragma once
// Which part of a global tensor a rank holds: run-time extents, and the one place where shards are
// checked to be even (law L8). Nothing here communicates: every rank can compute every other
// rank's tile.

#include <cstdint>
#include <type_traits>
#include <utility>

#include "dtm/core/layout.hpp"
#include "dtm/core/refuse.hpp"

namespace dtm {

/// Global extents of a tensor, one per dimension.
template <int Rank>
struct global_extents {
  std::int64_t extent[Rank > 0 ? Rank : 1] = {};
  constexpr std::int64_t operator[](int d) const { return extent[d]; }
  constexpr std::int64_t& operator[](int d) { return extent[d]; }
  friend constexpr bool operator==(global_extents const&, global_extents const&) = default;
};

/// A half-open box of global indices.
template <int Rank>
struct box {
  std::int64_t begin[Rank > 0 ? Rank : 1] = {};
  std::int64_t end[Rank > 0 ? Rank : 1] = {};

  constexpr std::int64_t extent(int d) const { return end[d] > begin[d] ? end[d] - begin[d] : 0; }
  constexpr std::int64_t size() const {
    std::int64_t product = 1;
    for (int d = 0; d < Rank; ++d) product *= extent(d);
    return product;
  }
  friend constexpr box intersection(box const& a, box const& b) {
    box result;
    for (int d = 0; d < Rank; ++d) {
      result.begin[d] = a.begin[d] > b.begin[d] ? a.begin[d] : b.begin[d];
      result.end[d] = a.end[d] < b.end[d] ? a.end[d] : b.end[d];
    }
    return result;
  }
};

namespace detail {

template <class Extent, class Axis, int Size>
struct shard_is_even {
  static_assert(false_for<Extent, Axis>,
                "dtm layout: the extent does not divide by the mesh axis that shards it; Extent, "
                "Axis and Size stand in the line that names shard_is_even");
};

template <class Layout, int Axis, int Dimension = Layout::sharded_by(Axis)>
struct static_axis_check
    : unless<dimension_t<typename Layout::shape_type, Dimension>::static_extent <= 0 ||
                 Layout::mesh_type::static_size(Axis) <= 0 ||
                 dimension_t<typename Layout::shape_type, Dimension>::static_extent %
                         (Layout::mesh_type::static_size(Axis) > 0
                              ? Layout::mesh_type::static_size(Axis)
                              : 1) ==
                     0,
             shard_is_even<dimension_t<typename Layout::shape_type, Dimension>,
                           typename Layout::mesh_type::template axis_at<Axis>,
                           Layout::mesh_type::static_size(Axis)>> {};
template <class Layout, int Axis>
struct static_axis_check<Layout, Axis, -1> {};

template <class Layout, class Indices>
struct static_layout_check;
template <class Layout, int... Axis>
struct static_layout_check<Layout, std::integer_sequence<int, Axis...>>
    : static_axis_check<Layout, Axis>... {};

/// Number of blocks a dimension is split into.
template <class Layout>
constexpr std::int64_t parts_of(int dimension, int const* sizes) {
  std::int64_t parts = 1;
  for (int axis = 0; axis < Layout::mesh_type::rank; ++axis)
    if (Layout::sharded_by(axis) == dimension) parts *= sizes[axis];
  return parts;
}

/// Index of the block a coordinate holds of a dimension; the earlier mesh axis is the major one.
template <class Layout>
constexpr std::int64_t block_of(int dimension, int const* sizes, int const* coordinates) {
  std::int64_t block = 0;
  for (int axis = 0; axis < Layout::mesh_type::rank; ++axis)
    if (Layout::sharded_by(axis) == dimension) block = block * sizes[axis] + coordinates[axis];
  return block;
}

template <class D>
constexpr char const* dimension_name() {
  if constexpr (requires { D::letter; })
    return D::letter.characters;
  else
    return "channels";
}

template <class Layout, int D>
constexpr std::int64_t parts_at(int const* sizes) {
  return parts_of<Layout>(D, sizes);
}

/// Channels that share planes<C>: the extent is rounded up to the number of parts.
template <class Dimension>
constexpr std::int64_t settle_extent(std::int64_t wanted, std::int64_t parts) {
  if constexpr (plane_channels < Dimension >> 0) {
    return (plane_channels<Dimension> + parts - 1) / parts * parts;
  } else if constexpr (Dimension::static_extent > 0) {
    return Dimension::static_extent;
  } else {
    return wanted;
  }
}

template <class Layout, int D>
void check_even(std::int64_t extent, int const* sizes) {
  using dimension_type = dimension_t<typename Layout::shape_type, D>;
  if (extent < 0) refuse_extent(dimension_name<dimension_type>(), extent);
  std::int64_t const parts = parts_of<Layout>(D, sizes);
  if (extent % parts == 0) return;
  // the name of the axes, joined; at most a handful of characters
  char axes[128] = {};
  int length = 0;
  for (int axis = 0; axis < Layout::mesh_type::rank; ++axis) {
    if (Layout::sharded_by(axis) != D) continue;
    if (length > 0 && length < 120) axes[length++] = '*';
    for (char const* name = Layout::mesh_type::axis_name(axis); *name != 0 && length < 120; ++name)
      axes[length++] = *name;
  }
  refuse_uneven(dimension_name<dimension_type>(), extent, axes, parts);
}

}  // namespace detail

/// Extents with channels, pinned dimensions and planes filled in, each checked to divide by the
/// mesh.
template <class Layout>
global_extents<Layout::rank> checked_extents(global_extents<Layout::rank> wanted,
                                             int const* sizes) {
  [&]<int... D>(std::integer_sequence<int, D...>) {
    ((wanted[D] = detail::settle_extent<dimension_t<typename Layout::shape_type, D>>(
          wanted[D], detail::parts_of<Layout>(D, sizes))),
     ...);
    (detail::check_even<Layout, D>(wanted[D], sizes), ...);
  }
  (std::make_integer_sequence<int, Layout::rank>{});
  return wanted;
}

/// The box of global indices that the rank at `coordinates` holds.
template <class Layout>
constexpr box<Layout::rank> tile_of(global_extents<Layout::rank> const& global, int const* sizes,
                                    int const* coordinates) {
  box<Layout::rank> result;
  for (int d = 0; d < Layout::rank; ++d) {
    std::int64_t const extent = global[d] / detail::parts_of<Layout>(d, sizes);
    result.begin[d] = extent * detail::block_of<Layout>(d, sizes, coordinates);
    result.end[d] = result.begin[d] + extent;
  }
  return result;
}

}  // namespace dtm
