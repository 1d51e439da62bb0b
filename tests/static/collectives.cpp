// Every collective on every placement: on one axis as a table to read, on two axes as all
// combinations against the rules of law L4 written down once more on plain numbers.
#include "dtm/contract/transitions.hpp"

using namespace dtm;

namespace {

using line = mesh<cp0>;
using cube = shape<tokens, atoms, c<8>>;
using dealt = shape<tokens, atoms, planes<8>>;

// ---- one axis: what becomes of shard<0> shard<1> shard<2> replicate partial<sum> partial<max>
// ----

struct refused {};
struct as_planes {};  // the channels, dealt
template <int D>
using s = shard<D>;
using r = replicate;
using p = partial<sum>;
using m = partial<max>;
using no = refused;

template <class Placement>
struct expected_layout {
  using type = layout<line, cube, Placement>;
};
template <>
struct expected_layout<as_planes> {
  using type = layout<line, dealt, shard<2>>;
};

template <class Collective, class From, class To>
constexpr bool entry() {
  using before = layout<line, cube, From>;
  if constexpr (std::is_same_v<To, refused>) {
    return !detail::accepts<Collective, before>;
  } else if constexpr (detail::accepts<Collective, before>) {
    return std::is_same_v<after_t<Collective, before>, typename expected_layout<To>::type>;
  } else {
    return false;
  }
}
template <class Collective, class S0, class S1, class S2, class R, class P, class M>
inline constexpr bool row = entry<Collective, s<0>, S0>() && entry<Collective, s<1>, S1>() &&
                            entry<Collective, s<2>, S2>() && entry<Collective, r, R>() &&
                            entry<Collective, p, P>() && entry<Collective, m, M>();

// clang-format off
//                                    shard<0>   shard<1>   shard<2>   replicate  sum   max
static_assert(row<all_reduce<cp0>,          no,        no,        no,        no,     r,    r>);
static_assert(row<reduce_scatter<cp0, 0>,   no,        no,        no,        no,     s<0>, no>);
static_assert(row<reduce_scatter<cp0, 1>,   no,        no,        no,        no,     s<1>, no>);
static_assert(row<reduce_scatter<cp0, 2>,   no,        no,        no,        no,     s<2>, no>);
static_assert(row<reduce_scatter<cp0, 3>,   no,        no,        no,        no,     no,   no>);
static_assert(row<all_gather<cp0>,          r,         r,         r,         no,     no,   no>);
static_assert(row<all_to_all<move<cp0, 0>>, no,        s<0>,      s<0>,      no,     no,   no>);
static_assert(row<all_to_all<move<cp0, 1>>, s<1>,      no,        s<1>,      no,     no,   no>);
static_assert(row<all_to_all<move<cp0, 2>>, as_planes, as_planes, no,        no,     no,   no>);
static_assert(row<all_to_all<move<cp0, 3>>, no,        no,        no,        no,     no,   no>);
static_assert(row<all_slice<cp0, 0>,        no,        no,        no,        s<0>,   no,   no>);
static_assert(row<all_slice<cp0, 1>,        no,        no,        no,        s<1>,   no,   no>);
static_assert(row<all_slice<cp0, 2>,        no,        no,        no,        s<2>,   no,   no>);
static_assert(row<all_slice<cp0, -1>,       no,        no,        no,        no,     no,   no>);
static_assert(row<broadcast<cp0>,           no,        no,        no,        r,      no,   no>);
static_assert(row<ring_shift<cp0>,          s<0>,      s<1>,      s<2>,      r,      p,    m>);
static_assert(row<transpose<cp0, cp0>,      no,        no,        no,        no,     no,   no>);
static_assert(row<all_reduce<cp1>,          no,        no,        no,        no,     no,   no>);
static_assert(row<ring_shift<cp1>,          no,        no,        no,        no,     no,   no>);
static_assert(row<transpose<cp0, cp1>,      no,        no,        no,        no,     no,   no>);
// clang-format on

// ---- two axes: all pairs of placements ----

// A placement as a number: the dimension it shards, or one of these.
enum : int { replicated = 3, sum_pending = 4, max_pending = 5, placements = 6 };

template <int Code>
struct placement_of {
  using type = shard<Code>;
};
template <>
struct placement_of<replicated> {
  using type = replicate;
};
template <>
struct placement_of<sum_pending> {
  using type = partial<sum>;
};
template <>
struct placement_of<max_pending> {
  using type = partial<max>;
};

struct state {
  int on[2];
  bool channels_dealt = false;
  bool legal = true;
};
constexpr state illegal{{0, 0}, false, false};

constexpr bool is_sharded(int code) {
  return code < 3;
}
constexpr bool is_pending(int code) {
  return code == sum_pending || code == max_pending;
}
constexpr bool exist(state const& x) {  // pending sums and maxima do not mix
  return !(is_pending(x.on[0]) && is_pending(x.on[1]) && x.on[0] != x.on[1]);
}
/// cp1 stands inside cp0: is it on this dimension?
constexpr bool blocked(state const& x, int axis, int d) {
  return axis == 0 && x.on[1] == d;
}

constexpr state with(state x, int axis, int code) {
  x.on[axis] = code;
  return x;
}
constexpr state reduce(state const& x, int axis) {
  return is_pending(x.on[axis]) ? with(x, axis, replicated) : illegal;
}
constexpr state reduce_both(state const& x) {
  return is_pending(x.on[0]) && is_pending(x.on[1]) ? state{{replicated, replicated}} : illegal;
}
constexpr state scatter(state const& x, int axis, int d) {
  return x.on[axis] == sum_pending && !blocked(x, axis, d) ? with(x, axis, d) : illegal;
}
constexpr state gather(state const& x, int axis) {
  return is_sharded(x.on[axis]) && !blocked(x, axis, x.on[axis]) ? with(x, axis, replicated)
                                                                 : illegal;
}
constexpr state slice(state const& x, int axis, int d) {
  return x.on[axis] == replicated && !blocked(x, axis, d) ? with(x, axis, d) : illegal;
}
constexpr state exchange(state const& x, int axis, int d) {
  int const from = x.on[axis], other = x.on[1 - axis];
  if (!is_sharded(from) || from == d || blocked(x, axis, from) || blocked(x, axis, d))
    return illegal;
  if (other == 2 && (from == 2 || d == 2))
    return illegal;  // channels change hands on both axes at once
  state y = with(x, axis, d);
  y.channels_dealt = d == 2;
  return y;
}
constexpr state exchange_both(state const& x, int d, int e) {
  if (!is_sharded(x.on[0]) || !is_sharded(x.on[1]) || x.on[0] == d || x.on[1] == e) return illegal;
  return state{{d, e}, d == 2 || e == 2};
}
constexpr state turn(state const& x) {
  bool const moves = x.on[0] != x.on[1] && (is_sharded(x.on[0]) || is_sharded(x.on[1]));
  bool const linear = x.on[0] != max_pending && x.on[1] != max_pending;
  return moves && linear ? state{{x.on[1], x.on[0]}} : illegal;
}
constexpr state send_first(state const& x, int axis) {
  return x.on[axis] == replicated ? x : illegal;
}

using square = mesh<cp0, cp1>;
template <class Shape, int A, int B>
using placed =
    layout<square, Shape, typename placement_of<A>::type, typename placement_of<B>::type>;

template <class Collective, int A, int B, state Expected>
constexpr bool agrees() {
  using before = placed<cube, A, B>;
  if constexpr (!Expected.legal) {
    return !detail::accepts<Collective, before>;
  } else if constexpr (detail::accepts<Collective, before>) {
    using channels = std::conditional_t<Expected.channels_dealt, dealt, cube>;
    return std::is_same_v<after_t<Collective, before>,
                          placed<channels, Expected.on[0], Expected.on[1]>>;
  } else {
    return false;
  }
}

template <int A, int B, int D>
constexpr bool every_dimension() {
  constexpr state x{{A, B}};
  return agrees<reduce_scatter<cp0, D>, A, B, scatter(x, 0, D)>() &&
         agrees<reduce_scatter<cp1, D>, A, B, scatter(x, 1, D)>() &&
         agrees<all_slice<cp0, D>, A, B, slice(x, 0, D)>() &&
         agrees<all_slice<cp1, D>, A, B, slice(x, 1, D)>() &&
         agrees<all_to_all<move<cp0, D>>, A, B, exchange(x, 0, D)>() &&
         agrees<all_to_all<move<cp1, D>>, A, B, exchange(x, 1, D)>() &&
         agrees<all_to_all<move<cp0, D>, move<cp1, 0>>, A, B, exchange_both(x, D, 0)>() &&
         agrees<all_to_all<move<cp0, D>, move<cp1, 1>>, A, B, exchange_both(x, D, 1)>() &&
         agrees<all_to_all<move<cp1, 2>, move<cp0, D>>, A, B, exchange_both(x, D, 2)>();
}

template <int A, int B>
constexpr bool every_collective() {
  constexpr state x{{A, B}};
  if constexpr (!exist(x)) {
    return true;
  } else {
    return agrees<all_reduce<cp0>, A, B, reduce(x, 0)>() &&
           agrees<all_reduce<cp1>, A, B, reduce(x, 1)>() &&
           agrees<all_reduce<cp0, cp1>, A, B, reduce_both(x)>() &&
           agrees<all_gather<cp0>, A, B, gather(x, 0)>() &&
           agrees<all_gather<cp1>, A, B, gather(x, 1)>() &&
           agrees<transpose<cp0, cp1>, A, B, turn(x)>() &&
           agrees<transpose<cp1, cp0>, A, B, turn(x)>() &&
           agrees<broadcast<cp0>, A, B, send_first(x, 0)>() &&
           agrees<broadcast<cp1>, A, B, send_first(x, 1)>() && agrees<ring_shift<cp0>, A, B, x>() &&
           agrees<ring_shift<cp1>, A, B, x>() && every_dimension<A, B, 0>() &&
           every_dimension<A, B, 1>() && every_dimension<A, B, 2>();
  }
}

template <int A>
constexpr bool every_partner() {
  return every_collective<A, 0>() && every_collective<A, 1>() && every_collective<A, 2>() &&
         every_collective<A, replicated>() && every_collective<A, sum_pending>() &&
         every_collective<A, max_pending>();
}
static_assert(every_partner<0>());
static_assert(every_partner<1>());
static_assert(every_partner<2>());
static_assert(every_partner<replicated>());
static_assert(every_partner<sum_pending>());
static_assert(every_partner<max_pending>());
static_assert(placements == 6);

// ---- planes come back as channels when the last axis leaves, and only all_to_all moves them ----

using two_d = shape<tokens, tokens, c<8>>;
using two_d_dealt = shape<tokens, tokens, planes<8>>;
using pair_tile = layout<square, two_d, shard<0>, shard<1>>;
using channel_tile = layout<square, two_d_dealt, shard<2>, shard<2>>;
static_assert(
    std::is_same_v<after_t<all_to_all<move<cp0, 2>, move<cp1, 2>>, pair_tile>, channel_tile>);
static_assert(
    std::is_same_v<after_t<all_to_all<move<cp0, 0>, move<cp1, 1>>, channel_tile>, pair_tile>);
static_assert(!detail::accepts<all_to_all<move<cp1, 1>>, channel_tile>);
static_assert(!detail::accepts<all_gather<cp1>, channel_tile>);
static_assert(
    !detail::accepts<transpose<cp0, cp1>, layout<square, two_d_dealt, shard<0>, shard<2>>>);
static_assert(
    std::is_same_v<after_t<all_reduce<cp0>, layout<square, two_d_dealt, partial<sum>, shard<2>>>,
                   layout<square, two_d_dealt, replicate, shard<2>>>);
// an exchange elsewhere leaves evenly sharded channels as they are
static_assert(
    std::is_same_v<after_t<all_to_all<move<cp0, 1>>, layout<square, two_d, shard<0>, shard<2>>>,
                   layout<square, two_d, shard<1>, shard<2>>>);

// ---- three axes: a third axis on a dimension forbids the transpose of the other two ----

using grid = mesh<dp, cp0, cp1>;
using volume = shape<batch, tokens, tokens>;
static_assert(
    detail::accepts<transpose<cp0, cp1>, layout<grid, volume, shard<0>, shard<1>, shard<2>>>);
static_assert(
    !detail::accepts<transpose<cp0, cp1>, layout<grid, volume, shard<1>, shard<1>, shard<2>>>);
static_assert(
    !detail::accepts<transpose<dp, cp1>, layout<grid, volume, shard<0>, shard<1>, shard<1>>>);
static_assert(
    !detail::accepts<all_gather<dp>, layout<grid, volume, shard<1>, replicate, shard<1>>>);
static_assert(detail::accepts<all_gather<cp1>, layout<grid, volume, shard<1>, shard<1>, shard<1>>>);
static_assert(
    !detail::accepts<all_slice<cp0, 1>, layout<grid, volume, shard<1>, replicate, shard<1>>>);
static_assert(
    detail::accepts<all_slice<cp1, 1>, layout<grid, volume, shard<1>, shard<1>, replicate>>);
// whoever moves together does not block
static_assert(detail::accepts<all_to_all<move<cp0, 2>, move<cp1, 2>>,
                              layout<grid, volume, shard<0>, shard<1>, shard<1>>>);
static_assert(!detail::accepts<all_to_all<move<dp, 2>, move<cp0, 2>>,
                               layout<grid, volume, shard<1>, shard<1>, shard<1>>>);

// a collective keeps element type and device
static_assert(
    std::is_same_v<after_t<all_gather<cp0>, tensor<bf16, layout<line, cube, shard<0>>, cuda>>,
                   tensor<bf16, layout<line, cube, replicate>, cuda>>);

}  // namespace
