// Law L6: parameter gradients are pending until synchronise; an optimiser takes complete ones only.
#include "dtm/parameters/layers.hpp"
#include "dtm/train/adam.hpp"
#include "negative/stand_in.hpp"

struct context_type : stand_in<grid> {
  dtm::memory& memory();
  comm::group& along_all();
};
using model = linear_with_bias_parameters<space<float, grid>, 8, 4>;
using other_model = linear_parameters<space<float, grid>, 8, 4>;
template <class T>
T& any();

#if DTM_CASE == 0
void program(context_type& ctx, model& m) {
  auto pending = zero_gradients(ctx, m);
  auto complete = synchronise(ctx, std::move(pending));
  clip_gradient_norm(ctx, complete, 1.0);
  adam<model> optimiser(ctx, m);
  optimiser.step(ctx, m, complete);
}
#endif

// case 1: error: static.assert.*dtm contract: an optimiser accepts the complete gradients
// case 1: gradients_are_complete<.*complete_gradients<.*, .*pending_gradients<
#if DTM_CASE == 1
void program(context_type& ctx, adam<model>& optimiser, model& m) {
  optimiser.step(ctx, m, zero_gradients(ctx, m));
}
#endif

// case 2: error: static.assert.*dtm contract: an optimiser accepts the complete gradients
// case 2: gradients_are_complete<.*complete_gradients<.*, .*space<float
#if DTM_CASE == 2
void program(context_type& ctx, adam<model>& optimiser, model& m) {
  optimiser.step(ctx, m, m);
}
#endif

// case 3: error: static.assert.*dtm contract: an optimiser accepts the complete gradients
// case 3: gradients_are_complete<
#if DTM_CASE == 3
void program(context_type& ctx, adam<model>& optimiser, model& m) {
  optimiser.step(ctx, m, any<complete_gradients_of_t<other_model>>());
}
#endif

// case 4: error: static.assert.*dtm gradients: synchronise takes the pending gradients
// case 4: not_pending_gradients<
#if DTM_CASE == 4
void program(context_type& ctx) {
  synchronise(ctx, std::move(any<complete_gradients_of_t<model>>()));
}
#endif

// case 5: error: static.assert.*dtm gradients: synchronise consumes the pending gradients
#if DTM_CASE == 5
void program(context_type& ctx) {
  synchronise(ctx, any<gradients_of_t<model>>());
}
#endif

// case 6: error: static.assert.*dtm gradients: the norm of a pending sum
#if DTM_CASE == 6
void program(context_type& ctx) {
  clip_gradient_norm(ctx, any<gradients_of_t<model>>(), 1.0);
}
#endif

// case 7: error: (no match for 'operator=|no viable overloaded '=)
// case 7: partial<.*sum
#if DTM_CASE == 7
void program() {
  any<model>().weight = std::move(any<gradients_of_t<model>>().weight);
}
#endif
