#pragma once
// The layout after a collective (law L4): which operands each one accepts, and what it yields. The list
// of collectives and the words of their refusals are in collectives.hpp.

#include <type_traits>

#include "dtm/contract/collectives.hpp"
#include "dtm/core/tensor.hpp"

namespace dtm {

namespace detail {

struct no_such_axis {};
template <class Layout, class Axis, int Index = Layout::mesh_type::template index<Axis>()>
struct placement_on {
  using type = typename Layout::template placement_at<Index>;
};
template <class Layout, class Axis>
struct placement_on<Layout, Axis, -1> {
  using type = no_such_axis;  // no collective accepts it
};
template <class Layout, class Axis>
using placement_on_t = typename placement_on<Layout, Axis>::type;

// An axis that shards `dimension` after `axis` in mesh order, or -1.
template <class Layout>
constexpr int axis_inside(int dimension, int axis) {
  int const inner = innermost_axis<Layout>(dimension);
  return inner > axis ? inner : -1;
}

template <class Layout, int Index, bool Valid = (Index >= 0)>
struct axis_or_none {
  using type = void;
};
template <class Layout, int Index>
struct axis_or_none<Layout, Index, true> {
  using type = typename Layout::mesh_type::template axis_at<Index>;
};

// Fails where another axis shards the dimension further inside.
template <class Collective, class Layout, class Axis, int Dimension,
          int Inner =
              Dimension<0 ? -1
                          : axis_inside<Layout>(Dimension, Layout::mesh_type::template index<
                                                               Axis>())> using is_innermost =
                  unless<(Inner < 0),
                         contract::innermost_axis_of<Collective, Axis, Dimension,
                                                     typename axis_or_none<Layout, Inner>::type>>;

template <class Collective, class Layout, int Dimension>
using has_dimension = unless<(Dimension >= 0 && Dimension < Layout::rank),
                             contract::dimension_of_operand<Collective, Dimension, Layout::rank>>;

template <class Collective, class Axis, class Got>
using needs = contract::collective_needs<Collective, Axis, Got>;

// Shards of planes<C> depend on how many ranks share the channels, hence only a whole exchange may
// change that.
template <class Shape>
struct channel_dimensions;
template <class... D>
struct channel_dimensions<shape<D...>> {
  static constexpr bool planes_at(int dimension) {
    bool const flags[] = {false, (plane_channels<D> > 0)...};
    return dimension >= 0 && dimension < int(sizeof...(D)) && flags[dimension + 1];
  }
  static constexpr bool at(int dimension) {
    bool const flags[] = {false, (is_channel_extent<D> || plane_channels<D> > 0)...};
    return dimension >= 0 && dimension < int(sizeof...(D)) && flags[dimension + 1];
  }
};
template <class Collective, class Layout, class Axis, int Dimension>
using no_planes = unless<!channel_dimensions<typename Layout::shape_type>::planes_at(Dimension),
                         contract::planes_of_channels<Collective, Axis, Dimension>>;

// The first check that fails, or the last one.
template <bool Placed, class Needs, class Next>
using first_of = std::conditional_t<Placed, Next, Needs>;

template <class Collective, class Layout>
struct transition;

template <class Layout, class... Axis>
struct transition<all_reduce<Axis...>, Layout> {
  using check =
      all_of<first_of<(count_of<Axis, Axis...> == 1),
                      contract::axis_named_twice<all_reduce<Axis...>, Axis>,
                      unless<is_partial<placement_on_t<Layout, Axis>>,
                             needs<all_reduce<Axis...>, Axis, placement_on_t<Layout, Axis>>>>...>;
  template <class L, class... Rest>
  struct each {
    using type = L;
  };
  template <class L, class First, class... Rest>
  struct each<L, First, Rest...> : each<place_t<L, First, replicate>, Rest...> {};
  using type = typename each<Layout, Axis...>::type;
};

template <class Layout, class Axis, int D>
struct transition<reduce_scatter<Axis, D>, Layout> {
  using check = first_of<std::is_same_v<placement_on_t<Layout, Axis>, partial<sum>>,
                         needs<reduce_scatter<Axis, D>, Axis, placement_on_t<Layout, Axis>>,
                         all_of<has_dimension<reduce_scatter<Axis, D>, Layout, D>,
                                no_planes<reduce_scatter<Axis, D>, Layout, Axis, D>,
                                is_innermost<reduce_scatter<Axis, D>, Layout, Axis, D>>>;
  using type =
      place_t<Layout, Axis, std::conditional_t<(D >= 0 && D < Layout::rank), shard<D>, replicate>>;
};

template <class Layout, class Axis>
struct transition<all_gather<Axis>, Layout> {
  using check = first_of<is_shard<placement_on_t<Layout, Axis>>,
                         needs<all_gather<Axis>, Axis, placement_on_t<Layout, Axis>>,
                         all_of<no_planes<all_gather<Axis>, Layout, Axis,
                                          shard_dimension<placement_on_t<Layout, Axis>>>,
                                is_innermost<all_gather<Axis>, Layout, Axis,
                                             shard_dimension<placement_on_t<Layout, Axis>>>>>;
  using type = place_t<Layout, Axis, replicate>;
};

template <class Layout, class Axis, int D>
struct transition<all_slice<Axis, D>, Layout> {
  using check = first_of<is_replicate<placement_on_t<Layout, Axis>>,
                         needs<all_slice<Axis, D>, Axis, placement_on_t<Layout, Axis>>,
                         all_of<has_dimension<all_slice<Axis, D>, Layout, D>,
                                no_planes<all_slice<Axis, D>, Layout, Axis, D>,
                                is_innermost<all_slice<Axis, D>, Layout, Axis, D>>>;
  using type =
      place_t<Layout, Axis, std::conditional_t<(D >= 0 && D < Layout::rank), shard<D>, replicate>>;
};

// Channel extents that change hands: c<C> <-> planes<C>, decided by whether an axis shards the
// dimension; only where the exchange takes place.
template <class Dimension, bool Sharded>
struct dealt {
  using type = Dimension;
};
template <std::int64_t C>
struct dealt<c<C>, true> {
  using type = planes<C>;
};
template <std::int64_t C>
struct dealt<planes<C>, false> {
  using type = c<C>;
};

template <class Before, class After, class Indices>
struct deal_channels;
template <class Before, class Mesh, class... D, class... P, int... I>
struct deal_channels<Before, layout<Mesh, shape<D...>, P...>, std::integer_sequence<int, I...>> {
  static constexpr bool exchanged(int position) {
    int const now[] = {shard_dimension<P>...};
    for (int a = 0; a < Mesh::rank; ++a)
      if (now[a] != Before::sharded_by(a) &&
          (now[a] == position || Before::sharded_by(a) == position))
        return true;
    return false;
  }
  template <int Position>
  static constexpr bool sharded = ((shard_dimension<P> == Position) || ...);
  template <class Dimension, int Position>
  using settled = std::conditional_t<exchanged(Position),
                                     typename dealt<Dimension, sharded<Position>>::type, Dimension>;
  using type = layout<Mesh, shape<settled<D, I>...>, P...>;
};

// One axis of an exchange: the placement it leaves, the dimension it joins, and the axes that
// stand in the way: inside it on either dimension and not moving in the same exchange.
template <class Layout, class M, class... Move>
struct exchange_of_axis {
  using collective = all_to_all<Move...>;
  using got = placement_on_t<Layout, typename M::axis>;
  static constexpr int own = Layout::mesh_type::template index<typename M::axis>();
  static constexpr int leaves = shard_dimension<got>;

  static constexpr int obstacle(int dimension) {
    int found = -1;
    for (int a = own + 1; a < Layout::mesh_type::rank; ++a)
      if (Layout::sharded_by(a) == dimension &&
          !((Layout::mesh_type::template index<typename Move::axis>() == a) || ...))
        found = a;
    return found;
  }
  static constexpr bool splits_planes(int dimension) {
    if (!channel_dimensions<typename Layout::shape_type>::at(dimension)) return false;
    for (int a = 0; a < Layout::mesh_type::rank; ++a)
      if (Layout::sharded_by(a) == dimension &&
          !((Layout::mesh_type::template index<typename Move::axis>() == a) || ...))
        return true;
    return false;
  }
  static constexpr bool once = count_of<typename M::axis, typename Move::axis...> == 1;
  static constexpr bool placed = leaves >= 0 && leaves != M::dimension;
  static constexpr int leaving = placed ? obstacle(leaves) : -1;
  static constexpr int joining = placed ? obstacle(M::dimension) : -1;
  static constexpr int inner = leaving >= 0 ? leaving : joining;
  static constexpr int split = splits_planes(leaves)         ? leaves
                               : splits_planes(M::dimension) ? M::dimension
                                                             : -1;

  using check = first_of<
      (once && placed),
      std::conditional_t<once, needs<collective, typename M::axis, got>,
                         contract::axis_named_twice<collective, typename M::axis>>,
      first_of<(M::dimension >= 0 && M::dimension < Layout::rank),
               contract::dimension_of_operand<collective, M::dimension, Layout::rank>,
               first_of<(split < 0),
                        contract::planes_of_channels<collective, typename M::axis, split>,
                        unless<(inner < 0),
                               contract::innermost_axis_of<
                                   collective, typename M::axis,
                                   (leaving >= 0 ? leaves : M::dimension),
                                   typename axis_or_none<Layout, inner>::type>>>>>;
  static constexpr bool legal =
      once && placed && M::dimension >= 0 && (M::dimension < Layout::rank) && split == -1 &&
      inner == -1;
};

template <class Layout, class... Move>
struct transition<all_to_all<Move...>, Layout> {
  using check = all_of<typename exchange_of_axis<Layout, Move, Move...>::check...>;
  template <class L, class... Rest>
  struct each {
    using type = L;
  };
  template <class L, class First, class... Rest>
  struct each<L, First, Rest...>
      : each<place_t<L, typename First::axis, shard<First::dimension>>, Rest...> {};
  template <bool Legal, class L>
  struct result {
    using type = L;
  };
  template <class L>
  struct result<true, L> {
    using moved = typename each<L, Move...>::type;
    using type = typename deal_channels<L, moved, std::make_integer_sequence<int, L::rank>>::type;
  };
  using type =
      typename result<(exchange_of_axis<Layout, Move, Move...>::legal && ...), Layout>::type;
};

// A dimension that a third axis shards as well would change its block order: the axis, or -1.
template <class Layout, class A, class B>
constexpr int third_axis(int dimension) {
  int found = -1;
  for (int a = 0; a < Layout::mesh_type::rank; ++a)
    if (dimension >= 0 && Layout::sharded_by(a) == dimension &&
        a != Layout::mesh_type::template index<A>() && a != Layout::mesh_type::template index<B>())
      found = a;
  return found;
}

template <class Layout, class A, class B, class Axis, int Dimension,
          int Third = third_axis<Layout, A, B>(Dimension)>
using only_these =
    unless<(Third < 0), contract::innermost_axis_of<transpose<A, B>, Axis, Dimension,
                                                    typename axis_or_none<Layout, Third>::type>>;

template <class Layout, class A, class B>
struct transition<transpose<A, B>, Layout> {
  using check = first_of<
      !std::is_same_v<placement_on_t<Layout, A>, placement_on_t<Layout, B>> &&
          is_placement<placement_on_t<Layout, A>> &&
          (is_shard<placement_on_t<Layout, A>> || is_shard<placement_on_t<Layout, B>>)&&!std::
              is_same_v<placement_on_t<Layout, A>, partial<max>>,
      needs<transpose<A, B>, A, placement_on_t<Layout, A>>,
      first_of<
          is_placement<placement_on_t<Layout, B>> &&
              !std::is_same_v<placement_on_t<Layout, B>, partial<max>>,
          needs<transpose<A, B>, B, placement_on_t<Layout, B>>,
          all_of<no_planes<transpose<A, B>, Layout, A, shard_dimension<placement_on_t<Layout, A>>>,
                 no_planes<transpose<A, B>, Layout, B, shard_dimension<placement_on_t<Layout, B>>>,
                 only_these<Layout, A, B, A, shard_dimension<placement_on_t<Layout, A>>>,
                 only_these<Layout, A, B, B, shard_dimension<placement_on_t<Layout, B>>>>>>;
  template <class P>
  using known = std::conditional_t<is_placement<P>, P, replicate>;
  using type = place_t<place_t<Layout, A, known<placement_on_t<Layout, B>>>, B,
                       known<placement_on_t<Layout, A>>>;
};

template <class Layout, class Axis>
struct transition<ring_shift<Axis>, Layout> {
  using check = unless<is_placement<placement_on_t<Layout, Axis>>,
                       needs<ring_shift<Axis>, Axis, placement_on_t<Layout, Axis>>>;
  using type = Layout;
};

template <class Layout, class Axis>
struct transition<broadcast<Axis>, Layout> {
  using check = unless<is_replicate<placement_on_t<Layout, Axis>>,
                       needs<broadcast<Axis>, Axis, placement_on_t<Layout, Axis>>>;
  using type = Layout;
};

template <class Collective, class T>
struct after;
template <class Collective, class Mesh, class Shape, class... P>
struct after<Collective, layout<Mesh, Shape, P...>> {
  using check = typename transition<Collective, layout<Mesh, Shape, P...>>::check;
  using type = typename transition<Collective, layout<Mesh, Shape, P...>>::type;
};
template <class Collective, class T, class Layout, class Device>
struct after<Collective, tensor<T, Layout, Device>> {
  using check = typename transition<Collective, Layout>::check;
  using type = tensor<T, typename transition<Collective, Layout>::type, Device>;
};

// A function's return type is computed without the check, which stands in its body: so a mistake
// is one error, not also a call that finds no function.
template <class Collective, class T>
using unchecked_after_t = typename after<Collective, T>::type;

/// Asks without failing.
template <class Collective, class T>
inline constexpr bool accepts = holds<typename after<Collective, T>::check>;

template <class Collective, class T>
constexpr void check_collective() {
  (void)sizeof(typename after<Collective, T>::check);
}

}  // namespace detail

/// The layout, or tensor type, after a collective; an illegal operand is one error that names
/// collective and axis.
template <class Collective, class T>
using after_t = typename detail::checked_type<detail::after<Collective, T>>::type;

}  // namespace dtm
