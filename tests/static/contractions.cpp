// The placement of a contraction for every pair of placements of its operands on one axis (law L3).
#include "dtm/contract/place_rules.hpp"

using namespace dtm;

namespace {

using line = mesh<cp0>;

struct refused {};
using b = shard<0>;           // the label of both operands and of the result
using free_label = shard<1>;  // i on the left, j on the right
using k = shard<2>;           // the contracted label
using r = replicate;
using p = partial<sum>;
using m = partial<max>;
using no = refused;

template <class Placement>
using left = layout<line, shape<batch, tokens, c<4>>, Placement>;
template <class Placement>
using right = layout<line, shape<batch, atoms, c<4>>, Placement>;
template <class Placement>
using product = layout<line, shape<batch, tokens, atoms>, Placement>;

template <class Left, class Right, class Expected>
constexpr bool entry() {
  using contraction = detail::contracted<"bik,bjk->bij", left<Left>, right<Right>>;
  constexpr bool accepted = detail::holds<typename contraction::template on_axis<0>::check>;
  if constexpr (std::is_same_v<Expected, refused>)
    return !accepted;
  else if constexpr (!accepted)
    return false;
  else
    return std::is_same_v<contraction_layout_t<"bik,bjk->bij", left<Left>, right<Right>>,
                          product<Expected>>;
}
template <class Left, class B, class J, class K, class R, class P, class M>
inline constexpr bool row =
    entry<Left, b, B>() && entry<Left, free_label, J>() && entry<Left, k, K>() &&
    entry<Left, r, R>() && entry<Left, p, P>() && entry<Left, m, M>();

// clang-format off
//       right:             b   j         k   replicate  sum  max
static_assert(row<b,          b,  no,       no, no,        no,  no>);
static_assert(row<free_label, no, no,       no, shard<1>,  no,  no>);
static_assert(row<k,          no, no,       p,  no,        no,  no>);
static_assert(row<r,          no, shard<2>, no, r,         p,   no>);
static_assert(row<p,          no, no,       no, p,         no,  no>);
static_assert(row<m,          no, no,       no, no,        no,  no>);
// clang-format on

// ---- other formulas ----

template <class... Placement>
using z = layout<mesh<dp, cp0, cp1>, shape<batch, tokens, tokens, c<8>>, Placement...>;

// triangle multiplication, outgoing: out(b,i,j,c) = sum over k of a(b,i,k,c) b(b,j,k,c)
static_assert(
    std::is_same_v<contraction_layout_t<"bikc,bjkc->bijc", z<shard<0>, shard<1>, replicate>,
                                        z<shard<0>, replicate, shard<1>>>,
                   z<shard<0>, shard<1>, shard<2>>>);
static_assert(
    std::is_same_v<contraction_layout_t<"bikc,bjkc->bijc", z<shard<0>, shard<2>, shard<3>>,
                                        z<shard<0>, shard<2>, shard<3>>>,
                   z<shard<0>, partial<sum>, shard<3>>>);
// incoming: out(b,i,j,c) = sum over k of a(b,k,i,c) b(b,k,j,c)
static_assert(
    std::is_same_v<contraction_layout_t<"bkic,bkjc->bijc", z<shard<0>, replicate, shard<2>>,
                                        z<shard<0>, shard<2>, replicate>>,
                   z<shard<0>, shard<2>, shard<1>>>);
// two axes on the contracted label, and on a label of the result
static_assert(
    std::is_same_v<contraction_layout_t<"bikc,bjkc->bijc", z<shard<0>, shard<2>, shard<2>>,
                                        z<shard<0>, shard<2>, shard<2>>>,
                   z<shard<0>, partial<sum>, partial<sum>>>);
static_assert(
    std::is_same_v<contraction_layout_t<"bikc,bjkc->bijc", z<shard<0>, shard<1>, shard<1>>,
                                        z<shard<0>, replicate, replicate>>,
                   z<shard<0>, shard<1>, shard<1>>>);
// the result's order is the formula's
static_assert(
    std::is_same_v<contraction_layout_t<"ik,kj->ji", layout<line, shape<tokens, c<4>>, shard<0>>,
                                        layout<line, shape<c<4>, c<6>>, replicate>>,
                   layout<line, shape<c<6>, tokens>, shard<1>>>);
// a label of one operand only, absent from the result, is summed
static_assert(
    std::is_same_v<contraction_layout_t<"ik,k->k", layout<line, shape<tokens, c<4>>, shard<0>>,
                                        layout<line, shape<c<4>>, replicate>>,
                   layout<line, shape<c<4>>, partial<sum>>>);
// a scalar
static_assert(std::is_same_v<contraction_layout_t<"i,i->", layout<line, shape<tokens>, shard<0>>,
                                                  layout<line, shape<tokens>, shard<0>>>,
                             layout<line, shape<>, partial<sum>>>);
// pinned extents are a different dimension
static_assert(
    detail::contracted<"ik,jk->ij", layout<line, shape<pinned<tokens, 4>, c<4>>, shard<0>>,
                       layout<line, shape<c<6>, c<4>>, replicate>>::formed);

}  // namespace
