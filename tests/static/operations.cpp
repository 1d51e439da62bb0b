// Which placements a local operation accepts, and how its result is placed (laws L3, L5): one axis,
// all placements, all pairs of them for operations of two operands.
#include "dtm/ops/elementwise.hpp"
#include "dtm/ops/linear.hpp"
#include "dtm/ops/outer.hpp"

using namespace dtm;

namespace {

using line = mesh<cp0>;
using r = replicate;
using p = partial<sum>;
using m = partial<max>;
template <int D>
using s = shard<D>;
struct no {};

template <class Placement>
using x_type = tensor<float, layout<line, shape<batch, tokens, c<8>>, Placement>>;

// ---- one operand ----

template <template <class> class Check, bool S0, bool S1, bool S2, bool R, bool P, bool M>
inline constexpr bool row =
    detail::holds<Check<x_type<s<0>>>> == S0&& detail::holds<Check<x_type<s<1>>>> ==
    S1&& detail::holds<Check<x_type<s<2>>>> == S2&& detail::holds<Check<x_type<r>>> ==
    R&& detail::holds<Check<x_type<p>>> == P&& detail::holds<Check<x_type<m>>> == M;
template <class X>
using not_linear = detail::complete_check<operation::sigmoid, X>;
template <class X>
using linear_map = detail::linear_check<operation::sum, X>;
template <class X>
using needs_channels = detail::whole_check<operation::layer_norm, X, 2>;
using weight = tensor<float, layout<line, shape<c<4>, c<8>>, replicate>>;
template <class X>
using product = detail::map_check<operation::linear, X, weight, 8>;

// clang-format off
//                                shard<0> shard<1> shard<2> replicate sum    max
static_assert(row<not_linear,     true,    true,    true,    true,     false, false>);
static_assert(row<linear_map,     true,    true,    true,    true,     true,  false>);
static_assert(row<needs_channels, true,    true,    false,   true,     true,  true>);
static_assert(row<product,        true,    true,    false,   true,     true,  false>);
// clang-format on

// sum over tokens, maximum over tokens: the placement that each placement becomes
template <class From, class ToSum, class ToMax>
inline constexpr bool reduces = std::is_same_v<sum_layout_t<typename x_type<From>::layout_type, 1>,
                                               layout<line, shape<batch, c<8>>, ToSum>>&&
    std::is_same_v<max_layout_t<typename x_type<From>::layout_type, 1>,
                   layout<line, shape<batch, c<8>>, ToMax>>;
static_assert(reduces<s<0>, s<0>, s<0>>);
static_assert(reduces<s<1>, p, m>);
static_assert(reduces<s<2>, s<1>, s<1>>);
static_assert(reduces<r, r, r>);

// ---- a parameter gradient, of cotangent and input: a term of a sum on every axis, or refused ----

template <class Dy, class X>
inline constexpr bool term = detail::holds<typename detail::parameter_gradient_check<
    typename x_type<Dy>::layout_type, typename x_type<X>::layout_type>::check>;
template <class Dy, bool S0, bool S1, bool R, bool P, bool M>
inline constexpr bool terms = term<Dy, s<0>> == S0&& term<Dy, s<1>> == S1&& term<Dy, r> ==
                              R&& term<Dy, p> == P&& term<Dy, m> == M;
// clang-format off
//        input:        shard<0> shard<1> replicate sum    max
static_assert(terms<s<0>, true,  false,   false,    false, false>);
static_assert(terms<s<1>, false, true,    false,    false, false>);
static_assert(terms<r,    false, false,   false,    false, false>);  // all ranks would add the same
static_assert(terms<p,    false, false,   true,     false, false>);
static_assert(terms<m,    false, false,   false,    false, false>);
// clang-format on

// ---- the outer sum of a row form and a column form ----

template <class Row, class Column, class Expected>
constexpr bool outer() {
  using rule =
      detail::outer_layout<typename x_type<Row>::layout_type, typename x_type<Column>::layout_type>;
  if constexpr (std::is_same_v<Expected, no>)
    return !detail::holds<typename rule::check>;
  else if constexpr (!detail::holds<typename rule::check>)
    return false;
  else
    return std::is_same_v<typename rule::type,
                          layout<line, shape<batch, tokens, tokens, c<8>>, Expected>>;
}
template <class Row, class S0, class S1, class S2, class R, class P, class M>
inline constexpr bool outers =
    outer<Row, s<0>, S0>() && outer<Row, s<1>, S1>() && outer<Row, s<2>, S2>() &&
    outer<Row, r, R>() && outer<Row, p, P>() && outer<Row, m, M>();
// clang-format off
//     column:             shard<0> shard<1> shard<2> replicate sum max
static_assert(outers<s<0>, s<0>,    no,      no,      no,       no, no>);
static_assert(outers<s<1>, no,      no,      no,      s<1>,     no, no>);
static_assert(outers<s<2>, no,      no,      no,      no,       no, no>);
static_assert(outers<r,    no,      s<2>,    no,      r,        no, no>);
static_assert(outers<p,    no,      no,      no,      no,       no, no>);
static_assert(outers<m,    no,      no,      no,      no,       no, no>);
// clang-format on

// ---- permutations carry their shards along ----

template <class From, class To, int... Order>
inline constexpr bool permutes =
    std::is_same_v<typename detail::permuted_layout_t<typename x_type<From>::layout_type,
                                                      Order...>::template placement<cp0>,
                   To>;
static_assert(permutes<s<0>, s<1>, 1, 0, 2> && permutes<s<1>, s<0>, 1, 0, 2>);
static_assert(permutes<s<0>, s<1>, 2, 0, 1> && permutes<s<1>, s<2>, 2, 0, 1> &&
              permutes<s<2>, s<0>, 2, 0, 1>);
static_assert(permutes<r, r, 2, 1, 0> && permutes<p, p, 2, 1, 0> && permutes<m, m, 2, 1, 0>);

}  // namespace
