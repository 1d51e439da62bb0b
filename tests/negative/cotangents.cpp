// Law L5: the type of a cotangent is computed; a forgotten or doubled reduction does not compile.
#include "negative/vocabulary.hpp"

namespace module {
struct sample;
}
namespace arg {
struct dy;
}

template <class Placement>
using x_type = on_line<shape<tokens, c<8>>, Placement>;

/// Stands for a backward that takes the cotangent of a replicated or a sharded output.
template <class Y>
struct sample {
  using takes = inputs<named<arg::dy, cotangent_t<Y>>>;
  void backward(cotangent_t<Y> const&) const {}
  template <class... Got>
  void backward(Got const&...) const {
    (void)sizeof(diagnose<module::sample, takes, Got...>);
  }
};

/// Stands for an optimiser step: takes only a complete gradient.
void use_complete(x_type<replicate> const&);

template <class Collective, class T>
detail::unchecked_after_t<Collective, T> apply(T const&) {
  detail::check_collective<Collective, T>();
  return detail::unchecked_after_t<Collective, T>(site<line>{}, extents{bind<tokens>(4)});
}

#if DTM_CASE == 0
static_assert(std::is_same_v<cotangent_t<x_type<replicate>>, x_type<partial<sum>>>);
static_assert(std::is_same_v<cotangent_t<cotangent_t<x_type<replicate>>>, x_type<replicate>>);
void program(x_type<partial<sum>> const& dx, x_type<replicate> const& complete,
             x_type<shard<0>> const& shared) {
  sample<x_type<replicate>>{}.backward(dx);
  sample<x_type<partial<sum>>>{}.backward(complete);
  sample<x_type<shard<0>>>{}.backward(shared);
  use_complete(apply<all_reduce<cp0>>(dx));
}
#endif

// case 1: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 1: placement_on<.*at<module::sample, arg::dy>, .*cp0, .*partial<.*sum ?>, .*replicate>
#if DTM_CASE == 1
void program(x_type<replicate> const& dy) {
  sample<x_type<replicate>>{}.backward(dy);
}
#endif

// case 2: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 2: placement_on<.*at<module::sample, arg::dy>, .*cp0, .*replicate, .*partial<.*sum ?>
#if DTM_CASE == 2
void program(x_type<partial<sum>> const& dy) {
  sample<x_type<partial<sum>>>{}.backward(dy);
}
#endif

// case 3: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 3: placement_on<.*at<module::sample, arg::dy>, .*cp0, .*shard<0>, .*partial<.*sum ?>
#if DTM_CASE == 3
void program(x_type<partial<sum>> const& dy) {
  sample<x_type<shard<0>>>{}.backward(dy);
}
#endif

// case 4: error: (invalid initialization of ref|no matching function for call to 'use_complete')
// case 4: partial<.*sum
#if DTM_CASE == 4
void program(x_type<partial<sum>> const& dx) {
  use_complete(dx);
}
#endif

// case 5: error: static.assert.*dtm collective: the operand's placement on this axis
// case 5: collective_needs<.*all_reduce<.*cp0>, .*cp0, .*replicate
#if DTM_CASE == 5
void program(x_type<partial<sum>> const& dx) {
  use_complete(apply<all_reduce<cp0>>(apply<all_reduce<cp0>>(dx)));
}
#endif

// case 6: error: static.assert.*dtm collective: the operand's placement on this axis
// case 6: collective_needs<.*reduce_scatter<.*cp0, 0>, .*cp0, .*shard<0>
#if DTM_CASE == 6
void program(x_type<shard<0>> const& dx) {
  apply<reduce_scatter<cp0, 0>>(dx);
}
#endif

// case 7: error: static.assert.*dtm layout: a pending maximum has no cotangent
// case 7: no_cotangent_of<.*partial<.*max
#if DTM_CASE == 7
using wrong = cotangent_t<x_type<partial<max>>>;
#endif

// case 8: error: static.assert.*dtm layout: a sum and a maximum cannot both be pending
// case 8: layout<.*partial<.*sum ?>, .*partial<.*max
#if DTM_CASE == 8
static_assert(layout<grid, pair_shape, shard<0>, partial<sum>, partial<max>>::rank == 4);
#endif

// case 9: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 9: placement_on<.*operation::add, .*.*cp0, .*partial<.*sum ?>, .*replicate
#if DTM_CASE == 9
void program() {
  require_same<operation::add, x_type<partial<sum>>, x_type<replicate>>();
}
#endif
