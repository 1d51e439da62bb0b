// The code blocks of docs/training.md, compiled and run; see pages_test.cpp.

#include "dtm/dtm.hpp"
#include "dtm/host.hpp"

#include "dtm/io/state.hpp"
#include "dtm/ops/share.hpp"
#include "dtm/train/adam.hpp"

#include "own_module/gated_pair.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

#include <filesystem>

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;

TEST_CASE("training.md") {
  auto& world = dtm::testing::world();
  context<host, grid> ctx(world, {1, 1, world.size()});
  using model_type = example::gated_pair<space<float, grid>, 6, 5>;
  model_type::S s(ctx, extents{bind<batch>(1), bind<tokens>(12)});
  for (float& value : s.to_local()) value = 0.5f;
  model_type model(ctx);
  // [initial]
  for (auto const& parameter : named_parameters(model)) {  // name, extents, count; values, assign
    std::vector<float> values(std::size_t(parameter.count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * float(int(i % 7) - 3);
    parameter.assign(values);
  }
  // [initial]
  // [optimiser]
  adam_options options;
  options.learning_rate = 1e-2;
  adam optimiser(ctx, model, options);
  // [optimiser]
  auto const loss_and_step = [&] {
    // [step]
    auto [z, saved] = model.forward(ctx, s);
    auto const dz = z.clone();                  // of the loss |z|^2 / 2
    auto pending = zero_gradients(ctx, model);  // partial<sum> on every axis, at least fp32
    auto const ds = model.backward(ctx, std::move(saved), dz, pending);
    auto gradients = synchronise(ctx, std::move(pending));  // replicate on every axis
    float const norm = item(clip_gradient_norm(ctx, gradients, 1.0));
    optimiser.step(ctx, model, gradients);
    // [step]
    CHECK((norm > 0 && ds.size() == s.size()));
    double loss = 0;
    for (float value : z.to_local()) loss += 0.5 * value * value;
    ctx.along_all().all_reduce(&loss, &loss, 1, comm::reduction::sum, {"loss"}).wait();
    return loss;
  };
  double const first = loss_and_step();
  CHECK(loss_and_step() < first);

  // [share]
  model_type::S ds = s.clone();                        // complete: the same on every cp1
  auto terms = share<cp1>(ctx, std::move(ds));         // coordinate 0 keeps it, the others hold 0
  auto const again = complete(ctx, std::move(terms));  // an all_reduce over cp1
  // [share]
  CHECK(again.data()[0] == s.data()[0]);

  std::string const path = "docs_pages_np" + std::to_string(world.size()) + ".safetensors";
  // [state]
  io::save_state(world, model, path);  // rank 0 writes; the file is old or new, never half
  io::load_state(world, model, path);  // every rank reads; names, shapes and content must fit
  // [state]
  world.meet({"all have read"});
  if (world.rank() == 0) std::filesystem::remove(path);
}
