// Law L4: a collective is a transition between placements; what it refuses is one error that names
// the collective, the axis and the placement.
#include "negative/vocabulary.hpp"

using cube = shape<tokens, atoms, c<8>>;
template <class Collective, class Placement>
using after_on_line = after_t<Collective, on_line<cube, Placement>>;
template <class Collective, class... Placement>
using after_on_grid = after_t<Collective, pair_placed<Placement...>>;

#if DTM_CASE == 0
template <class Got, class Wanted>
inline constexpr bool same = std::is_same_v<Got, Wanted>;
static_assert(same<after_on_line<all_reduce<cp0>, partial<max>>, on_line<cube, replicate>>);
static_assert(same<after_on_line<reduce_scatter<cp0, 2>, partial<sum>>, on_line<cube, shard<2>>>);
static_assert(same<after_on_line<all_gather<cp0>, shard<1>>, on_line<cube, replicate>>);
static_assert(same<after_on_line<all_to_all<move<cp0, 1>>, shard<0>>, on_line<cube, shard<1>>>);
static_assert(same<after_on_line<all_slice<cp0, 1>, replicate>, on_line<cube, shard<1>>>);
static_assert(same<after_on_line<broadcast<cp0>, replicate>, on_line<cube, replicate>>);
static_assert(same<after_on_line<ring_shift<cp0>, shard<0>>, on_line<cube, shard<0>>>);
static_assert(same<after_on_grid<transpose<cp0, cp1>, shard<0>, shard<1>, shard<2>>,
                   pair_placed<shard<0>, shard<2>, shard<1>>>);
static_assert(same<after_on_grid<all_reduce<cp0, cp1>, shard<0>, partial<sum>, partial<sum>>,
                   pair_placed<shard<0>, replicate, replicate>>);
static_assert(same<after_on_grid<all_gather<cp1>, shard<0>, shard<1>, shard<1>>,
                   pair_placed<shard<0>, shard<1>, replicate>>);
#endif

// ---- a placement that the collective refuses; all_reduce of replicate is a doubled reduction ----

// case 1: error: static.assert.*dtm collective: the operand's placement on this axis
// case 1: collective_needs<.*all_reduce<.*cp0>, .*cp0, .*shard<0>
#if DTM_CASE == 1
using wrong = after_on_line<all_reduce<cp0>, shard<0>>;
#endif

// case 2: error: static.assert.*dtm collective: the operand's placement on this axis
// case 2: collective_needs<.*all_reduce<.*cp0>, .*cp0, .*replicate
#if DTM_CASE == 2
using wrong = after_on_line<all_reduce<cp0>, replicate>;
#endif

// case 3: error: static.assert.*dtm collective: the operand's placement on this axis
// case 3: collective_needs<.*reduce_scatter<.*cp0, 1>, .*cp0, .*shard<0>
#if DTM_CASE == 3
using wrong = after_on_line<reduce_scatter<cp0, 1>, shard<0>>;
#endif

// case 4: error: static.assert.*dtm collective: the operand's placement on this axis
// case 4: collective_needs<.*reduce_scatter<.*cp0, 1>, .*cp0, .*replicate
#if DTM_CASE == 4
using wrong = after_on_line<reduce_scatter<cp0, 1>, replicate>;
#endif

// case 5: error: static.assert.*dtm collective: the operand's placement on this axis
// case 5: collective_needs<.*reduce_scatter<.*cp0, 1>, .*cp0, .*partial<.*max
#if DTM_CASE == 5
using wrong = after_on_line<reduce_scatter<cp0, 1>, partial<max>>;
#endif

// case 6: error: static.assert.*dtm collective: the operand's placement on this axis
// case 6: collective_needs<.*all_gather<.*cp0>, .*cp0, .*replicate
#if DTM_CASE == 6
using wrong = after_on_line<all_gather<cp0>, replicate>;
#endif

// case 7: error: static.assert.*dtm collective: the operand's placement on this axis
// case 7: collective_needs<.*all_gather<.*cp0>, .*cp0, .*partial<.*sum
#if DTM_CASE == 7
using wrong = after_on_line<all_gather<cp0>, partial<sum>>;
#endif

// case 8: error: static.assert.*dtm collective: the operand's placement on this axis
// case 8: collective_needs<.*all_gather<.*cp0>, .*cp0, .*partial<.*max
#if DTM_CASE == 8
using wrong = after_on_line<all_gather<cp0>, partial<max>>;
#endif

// case 9: error: static.assert.*dtm collective: the operand's placement on this axis
// case 9: collective_needs<.*all_to_all<.*move<.*cp0, 1> ?>, .*cp0, .*shard<1>
#if DTM_CASE == 9
using wrong = after_on_line<all_to_all<move<cp0, 1>>, shard<1>>;
#endif

// case 10: error: static.assert.*dtm collective: the operand's placement on this axis
// case 10: collective_needs<.*all_to_all<.*move<.*cp0, 1> ?>, .*cp0, .*replicate
#if DTM_CASE == 10
using wrong = after_on_line<all_to_all<move<cp0, 1>>, replicate>;
#endif

// case 11: error: static.assert.*dtm collective: the operand's placement on this axis
// case 11: collective_needs<.*all_to_all<.*move<.*cp0, 1> ?>, .*cp0, .*partial<.*sum
#if DTM_CASE == 11
using wrong = after_on_line<all_to_all<move<cp0, 1>>, partial<sum>>;
#endif

// case 12: error: static.assert.*dtm collective: the operand's placement on this axis
// case 12: collective_needs<.*all_slice<.*cp0, 1>, .*cp0, .*shard<0>
#if DTM_CASE == 12
using wrong = after_on_line<all_slice<cp0, 1>, shard<0>>;
#endif

// case 13: error: static.assert.*dtm collective: the operand's placement on this axis
// case 13: collective_needs<.*all_slice<.*cp0, 1>, .*cp0, .*partial<.*sum
#if DTM_CASE == 13
using wrong = after_on_line<all_slice<cp0, 1>, partial<sum>>;
#endif

// case 14: error: static.assert.*dtm collective: the operand's placement on this axis
// case 14: collective_needs<.*broadcast<.*cp0>, .*cp0, .*shard<0>
#if DTM_CASE == 14
using wrong = after_on_line<broadcast<cp0>, shard<0>>;
#endif

// case 15: error: static.assert.*dtm collective: the operand's placement on this axis
// case 15: collective_needs<.*broadcast<.*cp0>, .*cp0, .*partial<.*sum
#if DTM_CASE == 15
using wrong = after_on_line<broadcast<cp0>, partial<sum>>;
#endif

// case 16: error: static.assert.*dtm collective: the operand's placement on this axis
// case 16: collective_needs<.*transpose<.*cp0, .*cp1>, .*cp0, .*replicate
#if DTM_CASE == 16
using wrong = after_on_grid<transpose<cp0, cp1>, shard<0>, replicate, replicate>;
#endif

// case 17: error: static.assert.*dtm collective: the operand's placement on this axis
// case 17: collective_needs<.*transpose<.*cp0, .*cp1>, .*cp0, .*shard<1>
#if DTM_CASE == 17
using wrong = after_on_grid<transpose<cp0, cp1>, shard<0>, shard<1>, shard<1>>;
#endif

// case 18: error: static.assert.*dtm collective: the operand's placement on this axis
// case 18: collective_needs<.*transpose<.*cp0, .*cp1>, .*cp1, .*partial<.*max
#if DTM_CASE == 18
using wrong = after_on_grid<transpose<cp0, cp1>, shard<0>, shard<1>, partial<max>>;
#endif

// case 19: error: static.assert.*dtm collective: the operand's placement on this axis
// case 19: collective_needs<.*all_reduce<.*cp0, .*cp1>, .*cp1, .*shard<2>
#if DTM_CASE == 19
using wrong = after_on_grid<all_reduce<cp0, cp1>, shard<0>, partial<sum>, shard<2>>;
#endif

// ---- dimensions that the operand does not have ----

// case 20: error: static.assert.*dtm collective: the operand has no such dimension
// case 20: dimension_of_operand<.*reduce_scatter<.*cp0, 3>, 3, 3>
#if DTM_CASE == 20
using wrong = after_on_line<reduce_scatter<cp0, 3>, partial<sum>>;
#endif

// case 21: error: static.assert.*dtm collective: the operand has no such dimension
// case 21: dimension_of_operand<.*reduce_scatter<.*cp0, -1>, -1, 3>
#if DTM_CASE == 21
using wrong = after_on_line<reduce_scatter<cp0, -1>, partial<sum>>;
#endif

// case 22: error: static.assert.*dtm collective: the operand has no such dimension
// case 22: dimension_of_operand<.*all_slice<.*cp0, 3>, 3, 3>
#if DTM_CASE == 22
using wrong = after_on_line<all_slice<cp0, 3>, replicate>;
#endif

// case 23: error: static.assert.*dtm collective: the operand has no such dimension
// case 23: dimension_of_operand<.*all_to_all<.*move<.*cp0, 3> ?>, 3, 3>
#if DTM_CASE == 23
using wrong = after_on_line<all_to_all<move<cp0, 3>>, shard<0>>;
#endif

// case 24: error: static.assert.*dtm collective: the operand has no such dimension
// case 24: dimension_of_operand<.*all_to_all<.*move<.*cp0, -1> ?>, -1, 3>
#if DTM_CASE == 24
using wrong = after_on_line<all_to_all<move<cp0, -1>>, shard<0>>;
#endif

// ---- axes that the mesh does not have, or that are named twice ----

// case 25: error: static.assert.*dtm collective: the operand's placement on this axis
// case 25: collective_needs<.*all_reduce<tp>, tp, .*no_such_axis
#if DTM_CASE == 25
using wrong = after_on_line<all_reduce<tp>, shard<0>>;
#endif

// case 26: error: static.assert.*dtm collective: the operand's placement on this axis
// case 26: collective_needs<.*all_gather<tp>, tp, .*no_such_axis
#if DTM_CASE == 26
using wrong = after_on_line<all_gather<tp>, shard<0>>;
#endif

// case 27: error: static.assert.*dtm collective: the operand's placement on this axis
// case 27: collective_needs<.*reduce_scatter<tp, 1>, tp, .*no_such_axis
#if DTM_CASE == 27
using wrong = after_on_line<reduce_scatter<tp, 1>, shard<0>>;
#endif

// case 28: error: static.assert.*dtm collective: the operand's placement on this axis
// case 28: collective_needs<.*all_slice<tp, 1>, tp, .*no_such_axis
#if DTM_CASE == 28
using wrong = after_on_line<all_slice<tp, 1>, shard<0>>;
#endif

// case 29: error: static.assert.*dtm collective: the operand's placement on this axis
// case 29: collective_needs<.*all_to_all<.*move<tp, 1> ?>, tp, .*no_such_axis
#if DTM_CASE == 29
using wrong = after_on_line<all_to_all<move<tp, 1>>, shard<0>>;
#endif

// case 30: error: static.assert.*dtm collective: the operand's placement on this axis
// case 30: collective_needs<.*broadcast<tp>, tp, .*no_such_axis
#if DTM_CASE == 30
using wrong = after_on_line<broadcast<tp>, shard<0>>;
#endif

// case 31: error: static.assert.*dtm collective: the operand's placement on this axis
// case 31: collective_needs<.*ring_shift<tp>, tp, .*no_such_axis
#if DTM_CASE == 31
using wrong = after_on_line<ring_shift<tp>, shard<0>>;
#endif

// case 32: error: static.assert.*dtm collective: the operand's placement on this axis
// case 32: collective_needs<.*transpose<.*cp0, tp>, tp, .*no_such_axis
#if DTM_CASE == 32
using wrong = after_on_line<transpose<cp0, tp>, shard<0>>;
#endif

// case 33: error: static.assert.*dtm collective: one collective names an axis once
// case 33: axis_named_twice<.*all_reduce<.*cp0, .*cp0>, .*cp0>
#if DTM_CASE == 33
using wrong = after_on_line<all_reduce<cp0, cp0>, partial<sum>>;
#endif

// case 34: error: static.assert.*dtm collective: one collective names an axis once
// case 34: axis_named_twice<.*all_to_all<.*move<.*cp0, 1>, .*move<.*cp0, 2> ?>, .*cp0>
#if DTM_CASE == 34
using wrong = after_on_line<all_to_all<move<cp0, 1>, move<cp0, 2>>, shard<0>>;
#endif

// ---- order of two axes on one dimension: the innermost leaves first and joins last ----

// case 35: error: static.assert.*dtm collective: another mesh axis shards this dimension
// case 35: innermost_axis_of<.*all_gather<.*cp0>, .*cp0, 1, .*cp1>
#if DTM_CASE == 35
using wrong = after_on_grid<all_gather<cp0>, shard<0>, shard<1>, shard<1>>;
#endif

// case 36: error: static.assert.*dtm collective: another mesh axis shards this dimension
// case 36: innermost_axis_of<.*reduce_scatter<.*cp0, 2>, .*cp0, 2, .*cp1>
#if DTM_CASE == 36
using wrong = after_on_grid<reduce_scatter<cp0, 2>, shard<0>, partial<sum>, shard<2>>;
#endif

// case 37: error: static.assert.*dtm collective: another mesh axis shards this dimension
// case 37: innermost_axis_of<.*all_slice<.*dp, 1>, .*dp, 1, .*cp0>
#if DTM_CASE == 37
using wrong = after_on_grid<all_slice<dp, 1>, replicate, shard<1>, shard<2>>;
#endif

// case 38: error: static.assert.*dtm collective: another mesh axis shards this dimension
// case 38: innermost_axis_of<.*all_to_all<.*move<.*cp0, 2> ?>, .*cp0, 1, .*cp1>
#if DTM_CASE == 38
using wrong = after_on_grid<all_to_all<move<cp0, 2>>, shard<0>, shard<1>, shard<1>>;
#endif

// case 39: error: static.assert.*dtm collective: another mesh axis shards this dimension
// case 39: innermost_axis_of<.*all_to_all<.*move<.*cp0, 2> ?>, .*cp0, 2, .*cp1>
#if DTM_CASE == 39
using wrong = after_on_grid<all_to_all<move<cp0, 2>>, shard<0>, shard<1>, shard<2>>;
#endif

// case 40: error: static.assert.*dtm collective: another mesh axis shards this dimension
// case 40: innermost_axis_of<.*transpose<.*cp0, .*cp1>, .*cp0, 1, .*dp>
#if DTM_CASE == 40
using wrong = after_on_grid<transpose<cp0, cp1>, shard<1>, shard<1>, shard<2>>;
#endif

// ---- channels dealt as planes: only a whole exchange changes how many ranks share them ----

// case 41: error: static.assert.*dtm collective: channels that are dealt as planes come and go
// case 41: planes_of_channels<.*all_gather<.*cp0>, .*cp0, 1>
#if DTM_CASE == 41
using wrong = after_t<all_gather<cp0>, on_line<shape<tokens, planes<8>>, shard<1>>>;
#endif

// case 42: error: static.assert.*dtm collective: channels that are dealt as planes come and go
// case 42: planes_of_channels<.*all_slice<.*cp0, 1>, .*cp0, 1>
#if DTM_CASE == 42
using wrong = after_t<all_slice<cp0, 1>, on_line<shape<tokens, planes<8>>, replicate>>;
#endif

// case 43: error: static.assert.*dtm collective: channels that are dealt as planes come and go
// case 43: planes_of_channels<.*all_to_all<.*move<.*cp1, 2> ?>, .*cp1, 3>
#if DTM_CASE == 43
using both =
    tensor<float,
           layout<grid, shape<batch, tokens, tokens, planes<8>>, shard<0>, shard<3>, shard<3>>>;
using wrong = after_t<all_to_all<move<cp1, 2>>, both>;
#endif

// case 44: error: static.assert.*dtm collective: channels that are dealt as planes come and go
// case 44: planes_of_channels<.*all_to_all<.*move<.*cp1, 3> ?>, .*cp1, 3>
#if DTM_CASE == 44
using wrong = after_on_grid<all_to_all<move<cp1, 3>>, shard<0>, shard<3>, shard<2>>;
#endif

// case 45: error: static.assert.*dtm collective: channels that are dealt as planes come and go
// case 45: planes_of_channels<.*transpose<.*cp0, .*cp1>, .*cp0, 3>
#if DTM_CASE == 45
using one =
    tensor<float,
           layout<grid, shape<batch, tokens, tokens, planes<8>>, shard<0>, shard<3>, shard<2>>>;
using wrong = after_t<transpose<cp0, cp1>, one>;
#endif
