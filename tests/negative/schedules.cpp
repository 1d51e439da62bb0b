// A schedule that does not fit the mesh is refused where the compiler knows the mesh.
#include "dtm/contract/contract.hpp"
#include "negative/stand_in.hpp"
#include "negative/vocabulary.hpp"

#include "dtm/modules/triangle_product.hpp"

using namespace dtm;
template <int Rows, int Columns>
using on_mesh =
    triangle_product<outgoing, space<float, mesh<dp, sized<cp0, Rows>, sized<cp1, Columns>>>, 8,
                     cannon>;

#if DTM_CASE == 0
template struct dtm::triangle_product<
    outgoing, space<float, mesh<dp, sized<cp0, 3>, sized<cp1, 3>>>, 8, cannon>;
static_assert(on_mesh<2, 2>::is_outgoing);
#endif

// case 1: static.assert.*dtm triangle_multiplication: the cannon schedule needs a square mesh
// case 1: triangle_product
#if DTM_CASE == 1
static_assert(on_mesh<2, 3>::is_outgoing);
#endif
