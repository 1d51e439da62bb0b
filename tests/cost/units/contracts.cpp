// Contracts: cotangents, collectives, rules of placements, and what a module says that it takes.
#include "dtm/contract/contract.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/contract/transitions.hpp"

using namespace dtm;

namespace given {
struct z;
struct mask;
}  // namespace given

using grid = mesh<dp, cp0, cp1>;
template <class... Placement>
using pair = layout<grid, shape<batch, tokens, tokens, c<8>>, Placement...>;
using z = pair<shard<0>, shard<1>, shard<2>>;
using left = pair<shard<0>, shard<1>, replicate>;
using right = pair<shard<0>, replicate, shard<1>>;
using z_type = tensor<float, z>;
using mask_type = tensor<float, sum_layout_t<z, 3>>;
using takes = inputs<named<given::z, z_type>, named<given::mask, mask_type>>;
template <class A, class B>
inline constexpr bool same = std::is_same_v<A, B>;

static_assert(same<contraction_layout_t<"bikc,bjkc->bijc", left, right>, z>);
static_assert(same<cotangent_t<cotangent_t<z_type>>, z_type>);
static_assert(sum_layout_t<z, 1>::any_partial && max_layout_t<z, 2>::any_partial);
static_assert(same<after_t<all_gather<cp1>, z>, left>);
static_assert(same<after_t<reduce_scatter<cp1, 2>, pair<shard<0>, shard<1>, partial<sum>>>, z>);
static_assert(same<after_t<all_reduce<cp1>, pair<shard<0>, shard<1>, partial<sum>>>, left>);
static_assert(sizeof(takes) > 0);
