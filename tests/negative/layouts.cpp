// Laws L1 and L3: a layout is a mesh, a shape of dimensions, and one placement per mesh axis.
#include "dtm/core/space.hpp"
#include "negative/vocabulary.hpp"

#if DTM_CASE == 0
static_assert(sizeof(space<float, grid>) > 0);
static_assert(pair_layout::rank == 4);
static_assert(layout<grid, shape<tokens, c<8>>, shard<1>, partial<max>, replicate>::rank == 2);
static_assert(std::is_same_v<dimension_t<pair_shape, 3>, c<8>>);
static_assert(std::is_same_v<erase_dimension_t<pair_shape, 3>, shape<batch, tokens, tokens>>);
static_assert(std::is_same_v<insert_dimension_t<shape<tokens>, 1, c<8>>, shape<tokens, c<8>>>);
static_assert(
    std::is_same_v<with_placement_t<pair_layout, cp1, replicate>::placement<cp1>, replicate>);
#endif

// case 1: error: static.assert.*dtm layout: one placement per mesh axis
// case 1: layout<.*shape<.*batch.*>, .*shard<0>, .*shard<1> ?>
#if DTM_CASE == 1
static_assert(layout<grid, pair_shape, shard<0>, shard<1>>::rank == 4);
#endif

// case 2: error: static.assert.*dtm layout: one placement per mesh axis
#if DTM_CASE == 2
static_assert(layout<grid, pair_shape, shard<0>, shard<1>, shard<2>, replicate>::rank == 4);
#endif

// case 3: error: static.assert.*dtm layout: shard<d> names a dimension that the shape does not have
// case 3: shard<4>
#if DTM_CASE == 3
static_assert(layout<grid, pair_shape, shard<0>, shard<1>, shard<4>>::rank == 4);
#endif

// case 4: error: static.assert.*dtm layout: shard<d> names a dimension that the shape does not have
// case 4: shard<-1>
#if DTM_CASE == 4
static_assert(layout<grid, pair_shape, shard<0>, shard<1>, shard<-1>>::rank == 4);
#endif

// case 5: error: static.assert.*dtm layout: a placement is
// case 5: layout<.*batch.*cp1
#if DTM_CASE == 5
static_assert(layout<grid, pair_shape, shard<0>, shard<1>, cp1>::rank == 4);
#endif

// case 6: error: static.assert.*dtm layout: a placement is
// case 6: partial<.*tokens>
#if DTM_CASE == 6
static_assert(layout<grid, pair_shape, shard<0>, shard<1>, partial<tokens>>::rank == 4);
#endif

// case 7: error: static.assert.*dtm shape: a shape holds dimensions
// case 7: shape<.*batch, .*tokens, .*replicate ?>
#if DTM_CASE == 7
static_assert(shape<batch, tokens, replicate>::rank == 3);
#endif

// case 8: error: static.assert.*dtm shape: a static extent is positive
// case 8: extent_is_positive<.*c<0> ?>
#if DTM_CASE == 8
static_assert(shape<batch, tokens, c<0>>::rank == 3);
#endif

// case 9: error: static.assert.*dtm shape: a static extent is positive
// case 9: extent_is_positive<.*pinned<.*tokens, -3> ?>
#if DTM_CASE == 9
static_assert(shape<batch, pinned<tokens, -3>>::rank == 2);
#endif

// case 10: error: static.assert.*dtm shape: the shape has no such position
// case 10: position_outside<.*shape<.*batch, .*>, 4>
#if DTM_CASE == 10
using outside = dimension_t<pair_shape, 4>;
#endif

// case 11: error: static.assert.*dtm shape: the shape has no such position
#if DTM_CASE == 11
using outside = erase_dimension_t<pair_shape, 4>;
#endif

// case 12: error: static.assert.*dtm mesh: this mesh has no such axis
// case 12: not_an_axis_of<tp, .*mesh<.*dp, .*cp0, .*cp1> ?>
#if DTM_CASE == 12
using nowhere = pair_layout::placement<tp>;
#endif

// case 13: error: static.assert.*dtm mesh: this mesh has no such axis
// case 13: not_an_axis_of<tp, .*mesh<.*dp, .*cp0, .*cp1> ?>
#if DTM_CASE == 13
using nowhere = with_placement_t<pair_layout, tp, replicate>;
#endif

// case 14: error: static.assert.*dtm mesh: a mesh has at least one axis
#if DTM_CASE == 14
static_assert(mesh<>::rank == 0);
#endif

// case 15: error: static.assert.*dtm mesh: the size of an axis is positive
// case 15: size_is_positive<.*sized<.*cp0, 0> ?>
#if DTM_CASE == 15
static_assert(mesh<dp, sized<cp0, 0>>::rank == 2);
#endif

// case 16: error: static.assert.*dtm mesh: an axis stands in a mesh once
// case 16: mesh<.*cp0, .*cp0> ?
#if DTM_CASE == 16
static_assert(mesh<cp0, cp0>::rank == 2);
#endif

// case 17: error: static.assert.*dtm mesh: an axis of a mesh is derived from
// case 17: mesh<.*dp, .*tokens> ?
#if DTM_CASE == 17
static_assert(mesh<dp, tokens>::rank == 2);
#endif

// case 18: error: static.assert.*dtm space: parameters are float
// case 18: space<int, .*mesh<.*dp
#if DTM_CASE == 18
static_assert(sizeof(space<std::int32_t, grid>) > 0);
#endif

// case 19: error: static.assert.*dtm space: the modules need a mesh of three axes
// case 19: space<float, .*mesh<.*cp0> ?>
#if DTM_CASE == 19
static_assert(sizeof(space<float, line>) > 0);
#endif

// a tensor of a refused layout adds no error of its own
// case 20: error: static.assert.*dtm layout: one placement per mesh axis
#if DTM_CASE == 20
void program(site<grid> const& here) {
  tensor<float, layout<grid, shape<tokens>, replicate, shard<0>>> z(here, extents{bind<tokens>(8)});
}
#endif

// case 21: error: static.assert.*dtm layout: shard<d> names a dimension that the shape does not have
#if DTM_CASE == 21
void program(site<grid> const& here) {
  tensor<float, layout<grid, shape<tokens>, replicate, shard<0>, shard<1>>> z(here, extents{bind<tokens>(8)});
}
#endif
