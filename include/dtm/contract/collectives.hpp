#pragma once
// Collectives as transitions between layouts (law L4): the complete list, what each one accepts
// and yields. Types only; apply<all_gather<cp1>>(ctx, x) in comm/ moves the data.
//
//   all_reduce<axes...>               partial<op>  -> replicate      on every named axis
//   reduce_scatter<axis, d>           partial<sum> -> shard<d>
//   all_gather<axis>                  shard<d>     -> replicate
//   all_to_all<move<axis, e>...>      shard<d>     -> shard<e>       on every named axis, in one exchange
//   all_slice<axis, d>                replicate    -> shard<d>       no communication
//   transpose<a, b>                   the placements of two axes change places
//   ring_shift<axis>                  same layout, the tile of a rank further along: the step of a
//                                     schedule; the distance is a run-time value (shift_along)
//   broadcast<axis>                   same layout, replicate on the axis: coordinate 0 decides
//
// Where two axes shard one dimension the earlier axis is the major one, so only the last of them
// (the innermost) may let go of it, and a new axis may only join as the innermost. all_to_all onto
// a channel extent c<C> deals whole channels: the dimension becomes planes<C>, and comes back as
// c<C> when no axis shards it any more.

#include "dtm/core/type_list.hpp"

namespace dtm {

template <class... Axis>
struct all_reduce {};
template <class Axis, int Dimension>
struct reduce_scatter {};
template <class Axis>
struct all_gather {};
template <class Axis, int Dimension>
struct move {
  using axis = Axis;
  static constexpr int dimension = Dimension;
};
template <class... Move>
struct all_to_all {};
template <class Axis, int Dimension>
struct all_slice {};
template <class A, class B>
struct transpose {};
template <class Axis>
struct ring_shift {};
template <class Axis>
struct broadcast {};

namespace contract {

template <class Collective, class Axis, class Got>
struct collective_needs {
  static_assert(dtm::detail::false_for<Collective, Axis, Got>,
                "dtm collective: the operand's placement on this axis does not allow the "
                "collective; Collective, Axis and Got stand in the line that names "
                "collective_needs");
};

template <class Collective, class Axis, int Dimension, class Inner>
struct innermost_axis_of {
  static_assert(
      dtm::detail::false_for<Collective, Axis, Inner>,
      "dtm collective: another mesh axis shards this dimension further inside; gather or scatter "
      "the innermost axis first; Collective, Axis, Dimension and Inner stand in the line that "
      "names innermost_axis_of");
};

template <class Collective, class Axis>
struct axis_named_twice {
  static_assert(dtm::detail::false_for<Collective, Axis>,
                "dtm collective: one collective names an axis once; Collective and Axis stand in "
                "the line that names axis_named_twice");
};

template <class Collective, class Axis, int Dimension>
struct planes_of_channels {
  static_assert(
      dtm::detail::false_for<Collective, Axis>,
      "dtm collective: channels that are dealt as planes come and go by all_to_all, in one "
      "exchange of all axes that share them; Collective, Axis and Dimension stand in the line "
      "that names planes_of_channels");
};

template <class Collective, int Dimension, int Rank>
struct dimension_of_operand {
  static_assert(dtm::detail::false_for<Collective>,
                "dtm collective: the operand has no such dimension; Collective, Dimension and "
                "Rank stand in the line that names dimension_of_operand");
};

}  // namespace contract

}  // namespace dtm
