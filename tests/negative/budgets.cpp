// Law L7: what a module saves is of its class, within its bytes, and shrinks with the mesh.
#include "dtm/contract/contract.hpp"
#include "negative/vocabulary.hpp"

namespace module {
struct sample;
}

template <class Shape, class A, class B, class C, class T = float>
using kept = named<arg::x, tensor<T, layout<grid, Shape, A, B, C>>>;
using pair = kept<pair_shape, shard<0>, shard<1>, shard<2>>;
using mask = kept<shape<batch, tokens>, shard<0>, shard<1>, replicate>;
template <class Budget, class... Kept>
using within = within_budget<module::sample, saved<Kept...>, Budget>;

#if DTM_CASE == 0
static_assert(sizeof(within<pair_budget<2 * 8 * 4>, pair, pair, mask>) > 0);
static_assert(sizeof(within<single_budget<0>>) > 0);
static_assert(sizeof(within<no_budget>) > 0);
// channels may be dealt instead of a token dimension
using planes_kept = kept<shape<batch, planes<8>, tokens, tokens>, shard<0>, shard<1>, shard<1>>;
static_assert(sizeof(within<pair_budget<8 * 4>, planes_kept>) > 0);
#endif

// case 1: error: static.assert.*dtm budget: a module keeps more for backward
// case 1: saved_bytes_per_position<module::sample, .*budget_class::pair, 64, 63>
#if DTM_CASE == 1
static_assert(sizeof(within<pair_budget<63>, pair, pair>) > 0);
#endif

// case 2: error: static.assert.*dtm budget: a module keeps more for backward
// case 2: saved_bytes_per_position<module::sample, .*budget_class::pair, 64, 32>
#if DTM_CASE == 2
using wide = kept<pair_shape, shard<0>, shard<1>, shard<2>, double>;
static_assert(sizeof(within<pair_budget<32>, wide>) > 0);
#endif

// case 3: error: static.assert.*dtm budget: a tensor saved for backward grows faster
// case 3: saved_above_the_class<.*at<module::sample, .*arg::x>, .*budget_class::single, 2, 1>
#if DTM_CASE == 3
static_assert(sizeof(within<single_budget<1000>, pair>) > 0);
#endif

// case 4: error: static.assert.*dtm budget: a tensor saved for backward grows faster
// case 4: saved_above_the_class<.*at<module::sample, .*arg::x>, .*budget_class::pair, 3, 2>
#if DTM_CASE == 4
using cube = kept<shape<tokens, tokens, tokens>, shard<0>, shard<1>, shard<2>>;
static_assert(sizeof(within<pair_budget<1000>, cube>) > 0);
#endif

// case 5: error: static.assert.*dtm budget: a tensor saved for backward grows faster
// case 5: saved_above_the_class<.*at<module::sample, .*arg::x>, .*budget_class::nothing, 1, 0>
#if DTM_CASE == 5
static_assert(sizeof(within<no_budget, mask>) > 0);
#endif

// case 6: error: static.assert.*dtm budget: a tensor saved for backward does not shrink
// case 6: saved_without_sharding<.*at<module::sample, .*arg::x>, .*budget_class::pair, 2, 3>
#if DTM_CASE == 6
using gathered = kept<pair_shape, shard<0>, shard<1>, replicate>;
static_assert(sizeof(within<pair_budget<1000>, gathered>) > 0);
#endif

// case 7: error: static.assert.*dtm budget: a tensor saved for backward does not shrink
// case 7: saved_without_sharding<.*at<module::sample, .*arg::x>, .*budget_class::pair, 2, 3>
#if DTM_CASE == 7
using pending = kept<pair_shape, shard<0>, partial<sum>, shard<2>>;
static_assert(sizeof(within<pair_budget<1000>, pending>) > 0);
#endif

// case 8: error: static.assert.*dtm budget: a tensor saved for backward does not shrink
// case 8: saved_without_sharding<.*at<module::sample, .*arg::x>, .*budget_class::single, 1, 2>
#if DTM_CASE == 8
using whole = kept<shape<batch, tokens, c<8>>, shard<0>, replicate, replicate>;
static_assert(sizeof(within<single_budget<1000>, whole>) > 0);
#endif

// case 9: error: static.assert.*dtm budget: a tensor saved for backward grows faster
// case 9: saved_above_the_class<.*at<module::sample, .*arg::x>, .*budget_class::single, 2, 1>
#if DTM_CASE == 9
using pinned_pair =
    kept<shape<pinned<tokens, 4>, pinned<tokens, 4>>, replicate, shard<0>, shard<1>>;
static_assert(sizeof(within<single_budget<1000>, pinned_pair>) > 0);
#endif
