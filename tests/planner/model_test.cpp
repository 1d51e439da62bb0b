// A training step of the distogram model, with Adam and clipping: the plan's numbers are the run's.

#include "dtm/models/distogram_model.hpp"
#include "dtm/train/adam.hpp"
#include "plan_and_run.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

template <class T, class Schedule, class Costs>
void training(Costs& costs) {
  auto& ctx = costs.ctx();
  using S = space<T, grid, typename std::remove_cvref_t<decltype(ctx)>::device_type>;
  using model_type = distogram_model<S, 8, 8, Schedule>;
  auto const bound = extents{bind<batch>(2), bind<tokens>(12), bind<conformers>(1)};
  model_type model(ctx, 2);
  set_to_zero(model);
  adam<model_type> optimiser(ctx, model);
  using batch_type = typename model_type::batch_type;
  batch_type const input{zero_tensor<decltype(batch_type::res_type)>(ctx, bound),
                         zero_tensor<decltype(batch_type::features)>(ctx, bound),
                         zero_tensor<decltype(batch_type::token_mask)>(ctx, bound),
                         zero_tensor<decltype(batch_type::disto_mask)>(ctx, bound),
                         zero_tensor<decltype(batch_type::target)>(ctx, bound)};
  costs.add("model, forward", [&] { return model.forward(ctx, input); });
  for (auto const* step : {"first step", "second step"})
    costs.add("model, " + std::string(step), [&] {
      auto made = model.forward(ctx, input);
      auto gradients = zero_gradients(ctx, model);
      model.backward(ctx, std::move(made.saved), input, made.loss, gradients);
      auto complete = synchronise(ctx, std::move(gradients));
      clip_gradient_norm(ctx, complete, 1.0);
      optimiser.step(ctx, model, complete);
    });
}

}  // namespace

TEST_CASE("a training step of the distogram model") {
  plan_is_run([](auto& costs) { training<float, pair_schedules<>>(costs); });
}
