// Laws L4, L5, L9 where ranks talk: a refused collective, share, a value that only agree_on makes.
#include "dtm/comm/agreement.hpp"
#include "dtm/comm/apply.hpp"
#include "dtm/ops/share.hpp"
#include "negative/stand_in.hpp"

template <class... Axis>
struct context_of : stand_in<mesh<Axis...>> {
  dtm::memory& memory();
  template <class... Along>
  comm::group& along();
  template <class Along>
  int size() const;
  template <class Along>
  int coordinate() const;
};
using context_type = context_of<cp0>;
template <class Placement>
using x_type = on_line<shape<tokens, c<8>>, Placement>;
template <class T>
T& any();

void loop_over(comm::agreed<int> steps);

#if DTM_CASE == 0
void program(context_type& ctx, comm::world& world) {
  auto gathered = apply<all_gather<cp0>>(ctx, any<x_type<shard<0>>>(), "x");
  auto later = begin<all_reduce<cp0>>(ctx, any<x_type<partial<sum>>>(), "x");
  later.wait();
  apply<all_to_all<move<cp0, 1>>>(ctx, any<x_type<shard<0>>>());
  complete(ctx, share<cp0>(ctx, std::move(gathered)));
  loop_over(comm::agree_on(world, 3));
}
#endif

// case 1: error: static.assert.*dtm collective: the operand's placement on this axis
// case 1: collective_needs<.*all_gather<.*cp0>, .*cp0, .*replicate
#if DTM_CASE == 1
void program(context_type& ctx) {
  apply<all_gather<cp0>>(ctx, any<x_type<replicate>>());
}
#endif

// case 2: error: static.assert.*dtm collective: the operand's placement on this axis
// case 2: collective_needs<.*all_reduce<.*cp0>, .*cp0, .*replicate
#if DTM_CASE == 2
void program(context_type& ctx) {
  apply<all_reduce<cp0>>(ctx, apply<all_reduce<cp0>>(ctx, any<x_type<partial<sum>>>()));
}
#endif

// case 3: error: static.assert.*dtm collective: the operand's placement on this axis
// case 3: collective_needs<.*all_reduce<tp>, tp, .*no_such_axis
#if DTM_CASE == 3
void program(context_type& ctx) {
  apply<all_reduce<tp>>(ctx, any<x_type<partial<sum>>>());
}
#endif

// case 4: error: static.assert.*dtm collective: the operand's placement on this axis
// case 4: collective_needs<.*reduce_scatter<.*cp0, 0>, .*cp0, .*shard<1>
#if DTM_CASE == 4
void program(context_type& ctx) {
  begin<reduce_scatter<cp0, 0>>(ctx, any<x_type<shard<1>>>()).wait();
}
#endif

// case 5: error: static.assert.*dtm collective: the operand has no such dimension
// case 5: dimension_of_operand<.*all_to_all<
#if DTM_CASE == 5
void program(context_type& ctx) {
  apply<all_to_all<move<cp0, 2>>>(ctx, any<x_type<shard<0>>>());
}
#endif

// case 6: error: static.assert.*dtm contract: share<Axis> takes a value that is replicated
// case 6: share_needs_replicate<.*cp0, .*partial<.*sum ?>
#if DTM_CASE == 6
void program(context_type& ctx) {
  share<cp0>(ctx, any<x_type<partial<sum>>>().clone());
}
#endif

// case 7: error: static.assert.*dtm contract: share<Axis> takes a value that is replicated
// case 7: share_needs_replicate<.*cp0, .*shard<0>
#if DTM_CASE == 7
void program(context_type& ctx) {
  share<cp0>(ctx, any<x_type<shard<0>>>().clone());
}
#endif

// case 8: error: (could not convert|no matching function for call to 'loop_over')
// case 8: agreed<int>
#if DTM_CASE == 8
void program() {
  loop_over(3);
}
#endif

// case 9: error: .*(private constructor of class .*agreed<|agreed<.*is private)
#if DTM_CASE == 9
void program() {
  comm::agreed<int> steps(3);
}
#endif

// case 10: error: static.assert.*dtm contract: share<Axis> takes a value that is replicated
// case 10: share_needs_replicate<tp, .*no_such_axis
#if DTM_CASE == 10
void program(context_type& ctx) {
  share<tp>(ctx, any<x_type<replicate>>().clone());
}
#endif

// case 11: error: static.assert.*dtm collective: the operand's placement on this axis
// case 11: collective_needs<.*ring_shift<tp>, tp, .*no_such_axis
#if DTM_CASE == 11
void program(context_type& ctx) {
  shift_along<tp>(ctx, any<x_type<shard<0>>>(), 1).wait();
}
#endif

// case 12: static.assert.*dtm collective: the operand of begin must live until wait
#if DTM_CASE == 12
template <class T>
T made();
void program(context_type& ctx) {
  begin<all_gather<cp0>>(ctx, made<x_type<shard<0>>>()).wait();
}
#endif
