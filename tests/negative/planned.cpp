// The planner: a planned tensor has a type and sizes, and no values that could be read.
#include "dtm/planned.hpp"
#include "dtm/io/state.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/parameters/gradients.hpp"
#include "dtm/testing/full_tensor.hpp"
#include "negative/vocabulary.hpp"

using planned_context = context<planned<host>, grid>;
using planned_space = space<float, grid, planned<host>>;
using z_type = pair_tensor<planned_space, c<8>>;
using number = tensor<float, uniform_layout_t<grid, shape<>, replicate>, planned<host>>;
using module_type = transition<planned_space, 8, 16>;

#if DTM_CASE == 0
void program(planned_context& ctx, z_type& z, number& loss, float const* values, float* there) {
  z.copy_from_host(values);
  z = z.clone();
  auto const rows = apply<all_gather<cp1>>(ctx, z, "z");
  module_type const module(ctx);
  auto made = module.forward(ctx, z);
  auto gradients = zero_gradients(ctx, module);
  z = module.backward(ctx, std::move(made.saved), made.y, gradients);
  int const rounds = comm::planned_agreement(ctx.world(), 3);
  comm::agree(ctx.world(), rounds == 3, "three");
  auto const taken = from_local<z_type::layout_type>(ctx, values, 8, z.global());
  tensor<float, pair_layout>* on_the_host = nullptr;
  on_the_host->copy_to_host(there);
  (void)loss;
}
#endif

// case 1: error: static.assert.*dtm planner: a planned tensor has no values; plan only what runs
// case 1: planned<.*host>
#if DTM_CASE == 1
float program(number& loss) {
  return item(loss);
}
#endif

// case 2: error: static.assert.*dtm planner: a planned tensor has no values; plan only what runs
#if DTM_CASE == 2
float program(z_type& z) {
  return on_host(z)[0];
}
#endif

// case 3: error: static.assert.*dtm planner: a planned tensor has no values; plan only what runs
#if DTM_CASE == 3
void program(z_type& z, float* there) {
  z.copy_to_host(there);
}
#endif

// case 4: error: static.assert.*dtm planner: a planned tensor has no values; plan only what runs
#if DTM_CASE == 4
double program(planned_context& ctx, z_type& z) {
  return testing::full_tensor(ctx, z).values[0];
}
#endif

// case 5: error: static.assert.*dtm planner: .*none to agree on; .*comm::planned_agreement\(world, value
#if DTM_CASE == 5
int program(planned_context& ctx, int rounds) {
  return comm::agree_on(ctx.world(), rounds);
}
#endif

// case 6: error: static.assert.*dtm planner: a planned tensor has no values; plan only what runs
#if DTM_CASE == 6
std::size_t program(module_type& module) {
  return io::state_dict(module).size();
}
#endif

// case 7: error: static.assert.*dtm planner: a planned tensor has no values, none are read
#if DTM_CASE == 7
void program(planned_context& ctx, module_type& module) {
  io::load_state(ctx.world(), module, "weights.safetensors");
}
#endif

// case 8: error: static.assert.*dtm planner: a planned tensor has no values to write
#if DTM_CASE == 8
void program(planned_context& ctx, module_type& module) {
  io::save_state(ctx.world(), module, "weights.safetensors");
}
#endif

// case 9: error: no (match for 'operator=|viable overloaded '=')
// case 9: planned
#if DTM_CASE == 9
void program(z_type& z, tensor<float, pair_layout>& other) {
  other = std::move(z);
}
#endif

// case 10: error: static.assert.*dtm tensor: the context has another device than the tensor
// case 10: device_is<.*planned<.*cuda>, .*planned<.*host> ?>
#if DTM_CASE == 10
void program(planned_context& ctx) {
  tensor<float, pair_layout, planned<cuda>> z(ctx, extents{bind<batch>(1), bind<tokens>(4)});
}
#endif
