#pragma once
// A mesh is a list of named axes. Sizes are run-time values (one binary serves every mesh);
// sized<cp0, 2> pins one at compile time and makes a different mesh type. The world rank is
// row-major, the last axis fastest: rank = (dp * P0 + cp0) * P1 + cp1.

#include <cstddef>
#include <type_traits>

#include "dtm/core/text.hpp"
#include "dtm/core/type_list.hpp"

namespace dtm {

/// Base of a mesh axis; declare your own with struct tp : dtm::axis<"tp"> {};
template <text Name>
struct axis {
  static constexpr auto name = Name;
};

struct dp : axis<"dp"> {};
struct cp0 : axis<"cp0"> {};
struct cp1 : axis<"cp1"> {};

/// An axis of a mesh whose size is fixed at compile time.
template <class Axis, int Size>
struct sized {};

namespace detail {

template <class Axis>
struct mesh_axis {
  using type = Axis;
  static constexpr int size = 0;
};
template <class Axis, int Size>
struct mesh_axis<sized<Axis, Size>> {
  using type = Axis;
  static constexpr int size = Size;
};

template <class Axis, class Mesh>
struct not_an_axis_of {
  static_assert(false_for<Axis, Mesh>,
                "dtm mesh: this mesh has no such axis; Axis and Mesh stand in the line that names "
                "not_an_axis_of");
};

template <class>
inline constexpr bool size_is_positive = true;
template <class Axis, int Size>
inline constexpr bool size_is_positive<sized<Axis, Size>> = Size > 0;

template <class Axis>
concept named_axis = requires {
  mesh_axis<Axis>::type::name;
};

}  // namespace detail

template <class... Axis>
struct mesh {
  static constexpr int rank = sizeof...(Axis);
  static_assert(rank >= 1, "dtm mesh: a mesh has at least one axis");
  static_assert((detail::named_axis<Axis> && ...),
                "dtm mesh: an axis of a mesh is derived from dtm::axis");

  static_assert((detail::size_is_positive<Axis> && ...),
                "dtm mesh: the size of an axis is positive");
  static_assert(((detail::count_of<typename detail::mesh_axis<Axis>::type,
                                   typename detail::mesh_axis<Axis>::type...> == 1) &&
                 ...),
                "dtm mesh: an axis stands in a mesh once");

  template <class Wanted>
  static constexpr bool has =
      detail::position_of<Wanted, typename detail::mesh_axis<Axis>::type...>() >= 0;

  /// Position of an axis in mesh order; -1 for an axis that the mesh does not have.
  template <class Wanted>
  static constexpr int index() {
    return detail::position_of<Wanted, typename detail::mesh_axis<Axis>::type...>();
  }
  template <int Index>
  using axis_at = typename detail::mesh_axis<detail::pick_t<std::size_t(Index), Axis...>>::type;

  /// Compile-time size of an axis, 0 where it is a run-time value.
  static constexpr int static_size(int index) {
    int const sizes[] = {detail::mesh_axis<Axis>::size...};
    return sizes[index];
  }
  static constexpr char const* axis_name(int index) {
    char const* const names[] = {detail::mesh_axis<Axis>::type::name.characters...};
    return names[index];
  }
};

namespace detail {

/// Position of an axis that must be there.
template <class Mesh, class Axis>
struct checked_index : unless<Mesh::template has<Axis>, not_an_axis_of<Axis, Mesh>> {
  static constexpr int value = Mesh::template has<Axis> ? Mesh::template index<Axis>() : 0;
};

/// Axes as bits, in mesh order.
template <class Mesh, class... Axis>
inline constexpr unsigned axis_mask = (0u | ... | (1u << Mesh::template index<Axis>()));

}  // namespace detail

/// Where a process stands in a mesh, and the memory that its tensors come from. Made by a context.
struct memory;

template <class Mesh>
struct site {
  int sizes[Mesh::rank] = {};
  int coordinates[Mesh::rank] = {};
  memory* storage = nullptr;

  constexpr site const& where() const { return *this; }
  constexpr int ranks() const {
    int product = 1;
    for (int size : sizes) product *= size;
    return product;
  }
};

namespace detail {

template <class Mesh>
struct transposed_mesh {
  static_assert(false_for<Mesh>,
                "dtm mesh: a mesh of three axes can be transposed: data parallel, rows, columns");
};
template <class Data, class Rows, class Columns>
struct transposed_mesh<mesh<Data, Rows, Columns>> {
  using type = mesh<Data, Columns, Rows>;
};

}  // namespace detail

/// The same ranks with the axes of rows and columns in the other order: what shards the rows of a
/// pair there shards the columns of its transpose here.
template <class Mesh>
using transposed_mesh_t = typename detail::transposed_mesh<Mesh>::type;

/// The same place in a mesh of the same axes in another order.
template <class To, class From>
constexpr site<To> site_on(site<From> const& here) {
  if constexpr (std::is_same_v<To, From>) {
    return here;
  } else {
    static_assert(To::rank == From::rank, "dtm mesh: site_on is for meshes of the same axes");
    site<To> there;
    [&]<int... Axis>(std::integer_sequence<int, Axis...>) {
      ((there.sizes[Axis] =
            here.sizes[detail::checked_index<From, typename To::template axis_at<Axis>>::value],
        there.coordinates[Axis] =
            here.coordinates[detail::checked_index<From,
                                                   typename To::template axis_at<Axis>>::value]),
       ...);
    }
    (std::make_integer_sequence<int, To::rank>{});
    there.storage = here.storage;
    return there;
  }
}

}  // namespace dtm
