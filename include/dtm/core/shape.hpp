#pragma once
// A global shape: a list of named dimensions and channel extents, and the list operations of the
// placement algebra (replace, insert, erase, swap). Positions count from 0, as in DTensor's
// Shard(dim).

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dtm/core/dims.hpp"
#include "dtm/core/type_list.hpp"

namespace dtm {

template <class... D>
struct shape {
  static_assert(
      (dimension<D> && ...),
      "dtm shape: a shape holds dimensions (dtm::tokens, ...) and channel extents dtm::c<128>");
  static_assert((detail::extent_is_positive<D> && ...), "dtm shape: a static extent is positive");
  static constexpr int rank = sizeof...(D);
};

namespace detail {

template <class Shape, int Position>
struct position_outside {
  static_assert(false_for<Shape>,
                "dtm shape: the shape has no such position; Shape and Position stand in the line "
                "that names position_outside");
};
template <class Shape, int Position, int End = Shape::rank>
using inside = unless<(Position >= 0 && Position < End), position_outside<Shape, Position>>;

template <class Shape, int Position, bool Exists = (Position >= 0 && Position < Shape::rank)>
struct dimension_at : position_outside<Shape, Position> {
  using type = void;
};
template <class... D, int Position>
struct dimension_at<shape<D...>, Position, true> {
  using type = pick_t<std::size_t(Position), D...>;
};

// new position -> old position; one function an operation, so that types are rebuilt in one place
constexpr int source_of_erase(int position, int erased) {
  return position < erased ? position : position + 1;
}
constexpr int source_of_swap(int position, int a, int b) {
  return position == a ? b : position == b ? a : position;
}

template <class Shape, int Erased, class Indices>
struct erase;
template <class... D, int Erased, std::size_t... I>
struct erase<shape<D...>, Erased, std::index_sequence<I...>> : inside<shape<D...>, Erased> {
  using type = shape<pick_t<std::size_t(source_of_erase(int(I), Erased)), D...>...>;
};

template <class Shape, int A, int B, class Indices>
struct swap;
template <class... D, int A, int B, std::size_t... I>
struct swap<shape<D...>, A, B, std::index_sequence<I...>>
    : all_of<inside<shape<D...>, A>, inside<shape<D...>, B>> {
  static constexpr bool legal = A >= 0 && B >= 0 && A < int(sizeof...(D)) && B < int(sizeof...(D));
  using type = shape<pick_t<std::size_t(legal ? source_of_swap(int(I), A, B) : int(I)), D...>...>;
};

template <class Shape, int Position, class New, class Indices>
struct replace;
template <class... D, int Position, class New, std::size_t... I>
struct replace<shape<D...>, Position, New, std::index_sequence<I...>>
    : inside<shape<D...>, Position> {
  using type = shape<std::conditional_t<int(I) == Position, New, D>...>;
};

template <class Shape, int Position, class New, class Indices>
struct insert;
template <class... D, int Position, class New, std::size_t... I>
struct insert<shape<D...>, Position, New, std::index_sequence<I...>>
    : inside<shape<D...>, Position, int(sizeof...(D)) + 1> {
  static constexpr int end = sizeof...(D);
  static constexpr int where = Position >= 0 && Position < end ? Position : end;
  template <std::size_t At>
  static auto choose() {
    if constexpr (int(At) == where) {
      return slot<0, New>{};
    } else {
      return slot<0, pick_t<(int(At) < where ? At : At - 1), D...>>{};
    }
  }
  using type = shape<typename decltype(choose<I>())::type...>;
};

}  // namespace detail

template <class Shape, int Position>
using dimension_t = typename detail::dimension_at<Shape, Position>::type;

template <class Shape, int Position>
using erase_dimension_t = typename detail::erase<
    Shape, Position,
    std::make_index_sequence<std::size_t(Shape::rank > 0 ? Shape::rank - 1 : 0)>>::type;

template <class Shape, int Position, class New>
using replace_dimension_t =
    typename detail::replace<Shape, Position, New,
                             std::make_index_sequence<std::size_t(Shape::rank)>>::type;

template <class Shape, int Position, class New>
using insert_dimension_t =
    typename detail::insert<Shape, Position, New,
                            std::make_index_sequence<std::size_t(Shape::rank) + 1>>::type;

template <class Shape, int A, int B>
using swap_dimensions_t =
    typename detail::swap<Shape, A, B, std::make_index_sequence<std::size_t(Shape::rank)>>::type;

/// Product of the static extents of a shape (channels and pinned dimensions).
template <class... D>
constexpr std::int64_t static_volume(shape<D...>) {
  return (std::int64_t{1} * ... * (D::static_extent > 0 ? D::static_extent : 1));
}

/// How often a dimension occurs in a shape.
template <class Wanted, class... D>
constexpr int occurrences(shape<D...>) {
  return (0 + ... + int(std::is_same_v<Wanted, D>));
}

}  // namespace dtm
