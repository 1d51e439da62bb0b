// Law L3: the placement of a contraction is derived from its operands'; what cannot be
// combined is one error that names the formula, the axis and both placements.
#include "negative/vocabulary.hpp"

struct queries : dim<"Q"> {};
template <text Formula, class Left, class Right>
using product = contraction_layout_t<Formula, Left, Right>;
template <class Placement>
using rows = layout<line, shape<tokens, c<4>>, Placement>;  // "ik"
template <class Placement>
using weight = layout<line, shape<c<6>, c<4>>, Placement>;  // "jk"
template <class... Placement>
using left_pair = layout<grid, shape<tokens, queries, c<4>>, Placement...>;  // "ikc"
template <class... Placement>
using right_pair = layout<grid, shape<atoms, queries, c<4>>, Placement...>;  // "jkc"

#if DTM_CASE == 0
static_assert(std::is_same_v<product<"ik,jk->ij", rows<shard<0>>, weight<replicate>>,
                             layout<line, shape<tokens, c<6>>, shard<0>>>);
static_assert(std::is_same_v<product<"ik,jk->ij", rows<shard<1>>, weight<shard<1>>>,
                             layout<line, shape<tokens, c<6>>, partial<sum>>>);
static_assert(std::is_same_v<product<"ik,jk->ij", rows<partial<sum>>, weight<replicate>>,
                             layout<line, shape<tokens, c<6>>, partial<sum>>>);
static_assert(
    std::is_same_v<product<"ikc,jkc->ijc", left_pair<shard<0>, shard<1>, shard<1>>,
                           right_pair<replicate, shard<1>, shard<1>>>,
                   layout<grid, shape<tokens, atoms, c<4>>, shard<0>, partial<sum>, partial<sum>>>);
#endif

// case 1: error: static.assert.*dtm contract: the operands' placements on this axis
// case 1: operands_disagree<.*contraction<.*, .*cp0, .*shard<1>, .*replicate
#if DTM_CASE == 1
using wrong = product<"ik,jk->ij", rows<shard<1>>, weight<replicate>>;
#endif

// case 2: error: static.assert.*dtm contract: the operands' placements on this axis
// case 2: operands_disagree<.*contraction<.*, .*cp0, .*replicate, .*shard<1>
#if DTM_CASE == 2
using wrong = product<"ik,jk->ij", rows<replicate>, weight<shard<1>>>;
#endif

// case 3: error: static.assert.*dtm contract: the operands' placements on this axis
// case 3: operands_disagree<.*contraction<.*, .*cp0, .*shard<0>, .*shard<0>
#if DTM_CASE == 3
using wrong = product<"ik,jk->ij", rows<shard<0>>, weight<shard<0>>>;
#endif

// case 4: error: static.assert.*dtm contract: the operands' placements on this axis
// case 4: operands_disagree<.*contraction<.*, .*cp0, .*shard<1>, .*shard<0>
#if DTM_CASE == 4
using wrong = product<"ik,jk->ij", rows<shard<1>>, weight<shard<0>>>;
#endif

// case 5: error: static.assert.*dtm contract: the operands' placements on this axis
// case 5: operands_disagree<.*contraction<.*, .*cp0, .*partial<.*sum ?>, .*partial<.*sum ?>
#if DTM_CASE == 5
using wrong = product<"ik,jk->ij", rows<partial<sum>>, weight<partial<sum>>>;
#endif

// case 6: error: static.assert.*dtm contract: the operands' placements on this axis
// case 6: operands_disagree<.*contraction<.*, .*cp0, .*partial<.*sum ?>, .*shard<0>
#if DTM_CASE == 6
using wrong = product<"ik,jk->ij", rows<partial<sum>>, weight<shard<0>>>;
#endif

// case 7: error: static.assert.*dtm contract: the operands' placements on this axis
// case 7: operands_disagree<.*contraction<.*, .*cp0, .*partial<.*max ?>, .*replicate
#if DTM_CASE == 7
using wrong = product<"ik,jk->ij", rows<partial<max>>, weight<replicate>>;
#endif

// case 8: error: static.assert.*dtm contract: the operands' placements on this axis
// case 8: operands_disagree<.*contraction<.*, .*cp0, .*replicate, .*partial<.*max ?>
#if DTM_CASE == 8
using wrong = product<"ik,jk->ij", rows<replicate>, weight<partial<max>>>;
#endif

// case 9: error: static.assert.*dtm contract: the operands' placements on this axis
// case 9: operands_disagree<.*contraction<.*, .*cp[01], .*shard<[12]>, .*shard<[12]>
#if DTM_CASE == 9
using wrong = product<"ikc,jkc->ijc", left_pair<shard<0>, shard<1>, replicate>,
                      right_pair<replicate, shard<2>, shard<1>>>;
#endif

// case 10: error: static.assert.*dtm contract: the operands' placements on this axis
// case 10: operands_disagree<.*contraction<.*, .*cp1, .*shard<1>, .*replicate
#if DTM_CASE == 10
using wrong = product<"ikc,jkc->ijc", left_pair<shard<0>, shard<1>, shard<1>>,
                      right_pair<replicate, shard<1>, replicate>>;
#endif

// case 11: error: static.assert.*dtm contract: one label of a contraction names two
// case 11: labelled_dimension<.*contraction<.*, .*'?k'?, .*queries, .*c<4>
#if DTM_CASE == 11
using wrong =
    product<"ik,jk->ij", layout<line, shape<tokens, queries>, shard<0>>, weight<replicate>>;
#endif

// case 12: error: static.assert.*dtm contract: one label of a contraction names two
// case 12: labelled_dimension<.*contraction<.*, .*'?k'?, .*atoms, .*tokens
#if DTM_CASE == 12
using wrong = product<"ik,jk->ij", layout<line, shape<c<2>, atoms>, shard<1>>,
                      layout<line, shape<c<6>, tokens>, shard<1>>>;
#endif

// case 13: error: static.assert.*dtm contract: one label of a contraction names two
// case 13: labelled_dimension<.*contraction<.*, .*'?k'?, .*c<4>, .*c<5>
#if DTM_CASE == 13
using wrong = product<"ik,jk->ij", rows<shard<0>>, layout<line, shape<c<6>, c<5>>, replicate>>;
#endif

// case 14: error: static.assert.*dtm contract: a contraction has one label per dimension
// case 14: labels_of_operand<.*contraction<.*, 2, 3>
#if DTM_CASE == 14
using wrong = product<"bik,jk->bij", rows<shard<0>>, weight<replicate>>;
#endif

// case 15: error: static.assert.*dtm contract: a contraction has one label per dimension
// case 15: labels_of_operand<.*contraction<.*, 2, 1>
#if DTM_CASE == 15
using wrong = product<"ik,k->i", rows<shard<0>>, weight<replicate>>;
#endif

// case 16: error: static.assert.*dtm contract: a contraction is written
// case 16: contraction_formula<
#if DTM_CASE == 16
using wrong = product<"ik,jk", rows<shard<0>>, weight<replicate>>;
#endif

// case 17: error: static.assert.*dtm contract: a contraction is written
// case 17: contraction_formula<
#if DTM_CASE == 17
using wrong = product<"ii,jk->ij", rows<shard<0>>, weight<replicate>>;
#endif

// case 18: error: static.assert.*dtm contract: a contraction is written
// case 18: contraction_formula<
#if DTM_CASE == 18
using wrong = product<"ik,jk->im", rows<shard<0>>, weight<replicate>>;
#endif

// case 19: error: static.assert.*dtm contract: a contraction is written
// case 19: contraction_formula<
#if DTM_CASE == 19
using wrong = product<"ik, jk->ij", rows<shard<0>>, weight<replicate>>;
#endif

// case 20: error: static.assert.*dtm contract: a contraction is written
// case 20: contraction_formula<
#if DTM_CASE == 20
using wrong = product<"abcdefghi,jk->aj", rows<shard<0>>, weight<replicate>>;
#endif

// case 21: error: static.assert.*dtm contract: the mesh differs
// case 21: mesh_is<.*contraction<.*, .*mesh<.*cp0> ?, .*mesh<.*cp1>
#if DTM_CASE == 21
using wrong = product<"ik,jk->ij", rows<shard<0>>, layout<mesh<cp1>, shape<c<6>, c<4>>, replicate>>;
#endif
