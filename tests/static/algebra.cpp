// Lists of dimensions and placements: what erasing, inserting and swapping do to shards,
// cotangents, reductions, and the questions that a layout answers.
#include "dtm/contract/place_rules.hpp"
#include "dtm/contract/transitions.hpp"

using namespace dtm;

namespace {

template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

// ---- shapes ----

using pair = shape<batch, tokens, atoms, c<8>>;
static_assert(pair::rank == 4 && shape<>::rank == 0);
static_assert(same<dimension_t<pair, 0>, batch> && same<dimension_t<pair, 3>, c<8>>);
static_assert(same<erase_dimension_t<pair, 0>, shape<tokens, atoms, c<8>>>);
static_assert(same<erase_dimension_t<pair, 2>, shape<batch, tokens, c<8>>>);
static_assert(same<erase_dimension_t<pair, 3>, shape<batch, tokens, atoms>>);
static_assert(same<erase_dimension_t<shape<tokens>, 0>, shape<>>);
static_assert(
    same<insert_dimension_t<pair, 0, windows>, shape<windows, batch, tokens, atoms, c<8>>>);
static_assert(
    same<insert_dimension_t<pair, 2, windows>, shape<batch, tokens, windows, atoms, c<8>>>);
static_assert(
    same<insert_dimension_t<pair, 4, windows>, shape<batch, tokens, atoms, c<8>, windows>>);
static_assert(same<insert_dimension_t<shape<>, 0, c<2>>, shape<c<2>>>);
static_assert(same<replace_dimension_t<pair, 1, windows>, shape<batch, windows, atoms, c<8>>>);
static_assert(same<swap_dimensions_t<pair, 1, 2>, shape<batch, atoms, tokens, c<8>>>);
static_assert(same<swap_dimensions_t<pair, 3, 0>, shape<c<8>, tokens, atoms, batch>>);
static_assert(same<swap_dimensions_t<pair, 1, 1>, pair>);
static_assert(static_volume(shape<tokens, c<8>, pinned<atoms, 3>>{}) == 24);
static_assert(static_volume(shape<tokens>{}) == 1);
static_assert(occurrences<tokens>(shape<batch, tokens, tokens>{}) == 2);
static_assert(occurrences<atoms>(shape<batch, tokens, tokens>{}) == 0);
static_assert(run_time_dimension<tokens> && !run_time_dimension<c<8>>);
static_assert(!run_time_dimension<pinned<tokens, 4>> && !run_time_dimension<planes<8>>);
static_assert(dimension<planes<8>> && !dimension<replicate> && !dimension<int>);
static_assert(!same<tokens, atoms> && !same<tokens, pinned<tokens, 4>> && !same<c<8>, planes<8>>);

// ---- meshes ----

using grid = mesh<dp, cp0, cp1>;
using half_pinned = mesh<dp, sized<cp0, 2>, cp1>;
static_assert(grid::rank == 3 && grid::index<cp1>() == 2 && grid::has<cp0>);
static_assert(grid::index<batch>() == -1 && !grid::has<batch>);
static_assert(same<half_pinned::axis_at<1>, cp0> && half_pinned::has<cp0>);
static_assert(half_pinned::static_size(1) == 2 && half_pinned::static_size(2) == 0);
static_assert(!same<grid, half_pinned>);
static_assert(grid::axis_name(1)[0] == 'c' && grid::axis_name(1)[2] == '0');

// ---- layouts ----

template <class Shape, class... Placement>
using on_grid = layout<grid, Shape, Placement...>;
using z = on_grid<pair, shard<0>, shard<1>, shard<2>>;
static_assert(z::sharded_by(0) == 0 && z::sharded_by(2) == 2);
static_assert(on_grid<pair, replicate, shard<3>, partial<sum>>::sharded_by(0) == -1);
static_assert(on_grid<pair, replicate, shard<3>, partial<sum>>::sharded_by(2) == -1);
static_assert(same<z::placement<cp1>, shard<2>> && same<z::placement_at<0>, shard<0>>);
static_assert(
    same<with_placement_t<z, cp0, replicate>, on_grid<pair, shard<0>, replicate, shard<2>>>);
static_assert(same<uniform_layout_t<grid, pair, partial<sum>>,
                   on_grid<pair, partial<sum>, partial<sum>, partial<sum>>>);
static_assert(uniform_layout_t<grid, pair, partial<sum>>::all_partial && !z::all_partial);
static_assert(!uniform_layout_t<grid, pair, partial<max>>::all_partial);
static_assert(uniform_layout_t<grid, shape<c<2>>, replicate>::all_replicate && !z::all_replicate);
static_assert(on_grid<pair, shard<0>, partial<max>, shard<1>>::any_partial && !z::any_partial);
static_assert(innermost_axis<z>(1) == 1 && innermost_axis<z>(3) == -1);
static_assert(innermost_axis<on_grid<pair, shard<1>, shard<0>, shard<1>>>(1) == 2);

// swapping two dimensions renumbers their shards, also two on one dimension
static_assert(same<swap_layout_t<z, 1, 2>,
                   on_grid<shape<batch, atoms, tokens, c<8>>, shard<0>, shard<2>, shard<1>>>);
static_assert(same<swap_layout_t<on_grid<pair, replicate, shard<1>, shard<1>>, 1, 3>,
                   on_grid<shape<batch, c<8>, atoms, tokens>, replicate, shard<3>, shard<3>>>);
static_assert(same<swap_layout_t<on_grid<pair, partial<sum>, shard<3>, replicate>, 0, 1>,
                   on_grid<shape<tokens, batch, atoms, c<8>>, partial<sum>, shard<3>, replicate>>);

// inserting a dimension pushes later shards up
template <class Layout, int At>
using inserted =
    typename detail::reshape<Layout, insert_dimension_t<typename Layout::shape_type, At, windows>,
                             detail::renumber_insert<At>>::type;
static_assert(
    same<inserted<z, 1>,
         on_grid<shape<batch, windows, tokens, atoms, c<8>>, shard<0>, shard<2>, shard<3>>>);
static_assert(
    same<inserted<z, 4>,
         on_grid<shape<batch, tokens, atoms, c<8>, windows>, shard<0>, shard<1>, shard<2>>>);

// ---- sum and maximum over a dimension: the axis that sharded it holds a term ----

static_assert(same<sum_layout_t<z, 0>,
                   on_grid<shape<tokens, atoms, c<8>>, partial<sum>, shard<0>, shard<1>>>);
static_assert(
    same<sum_layout_t<z, 1>, on_grid<shape<batch, atoms, c<8>>, shard<0>, partial<sum>, shard<1>>>);
static_assert(same<sum_layout_t<z, 2>,
                   on_grid<shape<batch, tokens, c<8>>, shard<0>, shard<1>, partial<sum>>>);
static_assert(
    same<sum_layout_t<z, 3>, on_grid<shape<batch, tokens, atoms>, shard<0>, shard<1>, shard<2>>>);
static_assert(
    same<max_layout_t<z, 1>, on_grid<shape<batch, atoms, c<8>>, shard<0>, partial<max>, shard<1>>>);
static_assert(same<sum_layout_t<on_grid<pair, replicate, shard<1>, shard<1>>, 1>,
                   on_grid<shape<batch, atoms, c<8>>, replicate, partial<sum>, partial<sum>>>);
static_assert(same<sum_layout_t<on_grid<pair, partial<sum>, replicate, shard<3>>, 1>,
                   on_grid<shape<batch, atoms, c<8>>, partial<sum>, replicate, shard<2>>>);

// ---- cotangents: shard stays, replicate and partial<sum> change places; twice is once ----

template <class... Placement>
using t = tensor<bf16, on_grid<pair, Placement...>, cuda>;
static_assert(
    same<cotangent_t<t<shard<0>, replicate, partial<sum>>>, t<shard<0>, partial<sum>, replicate>>);
template <class... Placement>
inline constexpr bool dual = same<cotangent_t<cotangent_t<t<Placement...>>>, t<Placement...>>;
static_assert(dual<shard<0>, shard<1>, shard<2>> && dual<replicate, partial<sum>, shard<3>>);
static_assert(dual<replicate, replicate, replicate> &&
              dual<partial<sum>, partial<sum>, partial<sum>>);

// the cotangent of a collective's result goes back by the dual collective
template <class Forward, class Backward, class X>
inline constexpr bool adjoint =
    same<after_t<Backward, cotangent_t<after_t<Forward, X>>>, cotangent_t<X>>;
static_assert(adjoint<all_gather<cp1>, reduce_scatter<cp1, 2>, t<shard<0>, shard<1>, shard<2>>>);
static_assert(
    adjoint<reduce_scatter<cp1, 2>, all_gather<cp1>, t<shard<0>, shard<1>, partial<sum>>>);
static_assert(adjoint<all_reduce<cp1>, all_reduce<cp1>, t<shard<0>, shard<1>, partial<sum>>>);
static_assert(
    adjoint<all_to_all<move<cp1, 1>>, all_to_all<move<cp1, 2>>, t<shard<0>, replicate, shard<2>>>);
static_assert(adjoint<transpose<cp0, cp1>, transpose<cp0, cp1>, t<shard<0>, shard<1>, replicate>>);
static_assert(adjoint<ring_shift<cp0>, ring_shift<cp0>, t<shard<0>, shard<1>, replicate>>);

// ---- an even static split is a type error otherwise (tests/negative); these divide ----

using halves = mesh<dp, sized<cp0, 2>, sized<cp1, 3>>;
static_assert(sizeof(tensor<float, layout<halves, shape<batch, pinned<tokens, 4>, c<9>>, shard<0>,
                                          shard<1>, shard<2>>>) > 0);

}  // namespace
