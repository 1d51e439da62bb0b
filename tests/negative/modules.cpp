// Laws L1 and L5 in whole modules: the error names the module, its argument and what differs.
#include "dtm/comm/apply.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/modules/triangle_multiplication.hpp"
#include "negative/stand_in.hpp"

struct context_type : stand_in<grid> {
  dtm::memory& memory();
  template <class... Along>
  comm::group& along();
  template <class Along>
  int size() const;
  template <class Along>
  int coordinate() const;
};
using space_type = space<float, grid>;
using triangle = triangle_multiplication<outgoing, space_type, 8>;
using single = single_tensor<space_type, c<8>>;
using feed_forward = transition<space_type, 8, 16, single>;
using z_type = pair_tensor<space_type, c<8>>;
using mask_type = pair_tensor<space_type>;
template <class T>
T& any();

#if DTM_CASE == 0
void program(context_type& ctx, triangle const& module, gradients_of_t<triangle>& gradients) {
  auto result = module.forward(ctx, any<z_type>(), any<mask_type>());
  module.backward(ctx, std::move(result.saved), any<z_type>(), gradients);
}
void program(context_type& ctx, feed_forward const& module,
             gradients_of_t<feed_forward>& gradients) {
  auto result = module.forward(ctx, any<single>());
  module.backward(ctx, std::move(result.saved), any<cotangent_t<single>>(), gradients);
}
#endif

// case 1: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 1: placement_on<.*_outgoing, .*arg::mask>, .*cp1, .*shard<2>, .*replicate>
#if DTM_CASE == 1
void program(context_type& ctx, triangle const& module) {
  module.forward(
      ctx, any<z_type>(),
      any<with_layout_t<mask_type, with_placement_t<mask_type::layout_type, cp1, replicate>>>());
}
#endif

// case 2: error: static.assert.*dtm contract: wrong number of tensors
// case 2: takes<.*module::triangle_multiplication_outgoing, 2, 1>
#if DTM_CASE == 2
void program(context_type& ctx, triangle const& module) {
  module.forward(ctx, any<z_type>());
}
#endif

// case 3: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 3: placement_on<.*module::transition, .*arg::dy>, .*cp1, .*partial<.*sum>, .*replicate>
#if DTM_CASE == 3
void program(context_type& ctx, feed_forward const& module, feed_forward::kept& saved,
             gradients_of_t<feed_forward>& gradients) {
  module.backward(ctx, std::move(saved), any<single>(), gradients);
}
#endif

// case 4: error: static.assert.*dtm contract: backward takes what forward of the same module saved
#if DTM_CASE == 4
void program(context_type& ctx, triangle const& module, triangle::kept& saved) {
  module.backward(ctx, std::move(saved), any<z_type>(), any<complete_gradients_of_t<triangle>>());
}
#endif

// case 5: error: static.assert.*dtm contract: the operand is a pending reduction
// case 5: operation_on_partial<.*operation::layer_norm, .*cp1, .*partial<.*sum ?>
#if DTM_CASE == 5
using pending = with_layout_t<single, with_placement_t<single::layout_type, cp1, partial<sum>>>;
void program(context_type& ctx, transition<space_type, 8, 16, pending> const& module) {
  module.forward(ctx, any<pending>());
}
#endif

// case 6: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 6: dimension_is_sharded<.*operation::layer_norm, .*cp1, 2>
#if DTM_CASE == 6
using cut = with_layout_t<single, with_placement_t<single::layout_type, cp1, shard<2>>>;
void program(context_type& ctx, transition<space_type, 8, 16, cut> const& module) {
  module.forward(ctx, any<cut>());
}
#endif
