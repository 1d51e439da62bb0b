// A step of training: the distogram model in both directions, its gradients over all ranks, Adam.
#include "dtm/host.hpp"
#include "dtm/models/distogram_model.hpp"
#include "dtm/train/adam.hpp"

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;
using model_type = distogram_model<space<float, grid>, 8>;

void program(context<host, grid>& ctx, model_type& model, model_type::batch_type const& batch,
             adam<model_type>& optimiser) {
  auto result = model.forward(ctx, batch);
  auto pending = zero_gradients(ctx, model);
  model.backward(ctx, std::move(result.saved), batch, result.loss, pending);
  auto complete = synchronise(ctx, std::move(pending));
  clip_gradient_norm(ctx, complete, 1.0);
  optimiser.step(ctx, model, complete);
}
