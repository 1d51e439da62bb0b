// A whole step of training on the GPU backend: forward, backward, synchronise, clipping, Adam. After
// the first one nothing is allocated and the host waits for nothing, so that a step can be captured;
// replaying it gives the bits of taking it.

#include "dtm/models/distogram_model.hpp"

#include "dtm/testing/draw.hpp"
#include "dtm/train/adam.hpp"
#include "on_gpu.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

constexpr std::int64_t classes = 5, bins = 6;
using model_type =
    distogram_model<space<float, grid, cuda>, 8, 6, channel_all_to_all, classes, bins>;

double one_hot(std::uint64_t key, place const& p) {
  std::uint64_t const count = std::uint64_t(p.extent.back());
  return bits(key, p.linear / count) % count == p.linear % count;
}

/// A model, its input and its optimiser, all of them the same for every trainer.
struct trainer {
  cuda_context& ctx;
  model_type model;
  model_type::batch_type batch;
  model_type::loss_type::Loss d_loss, loss;
  adam<model_type> optimiser;

  explicit trainer(cuda_context& where)
      : ctx(where),
        model(where, 1),
        batch(make_batch(where)),
        d_loss(where, extents{}),
        loss(where, extents{}),
        optimiser(where, drawn(model), {.learning_rate = 1e-2}) {
    float const one = 1;
    d_loss.copy_from_host(&one);
  }

  void step() {
    auto result = model.forward(ctx, batch);
    auto pending = zero_gradients(ctx, model);
    model.backward(ctx, std::move(result.saved), batch, d_loss, pending);
    auto gradients = synchronise(ctx, std::move(pending));
    clip_gradient_norm(ctx, gradients, 1.0);
    optimiser.step(ctx, model, gradients);
    ctx.memory().copy_within(loss.data(), result.loss.data(), sizeof(float));
  }

  std::vector<float> parameters() {
    std::vector<float> all;
    for (auto const& view : named_parameters(model)) {
      auto const values = view.values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  static model_type::batch_type make_batch(cuda_context& ctx) {
    auto const bound = extents{bind<dtm::batch>(1), bind<tokens>(8), bind<conformers>(1)};
    model_type::batch_type b{{ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}};
    fill(b.res_type, one_hot, key_of(1, "res_type"));
    fill(b.features, draw_small_integer, key_of(1, "features"));
    fill(b.token_mask, draw_binary_mask, key_of(1, "token_mask"));
    fill(b.disto_mask, draw_binary_mask, key_of(1, "disto_mask"));
    fill(b.target, one_hot, key_of(1, "target"));
    return b;
  }
  static model_type& drawn(model_type& model) {
    for (auto const& view : named_parameters(model)) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < view.count; ++i)
        values.push_back(float(draw_parameter(view.name, key_of(1, view.name), view.extents,
                                              std::uint64_t(i))));
      view.assign(values);
    }
    return model;
  }
};

cuda_options small_workspace() {
  cuda_options options;
  options.workspace = 65536;  // the stand-in touches all of it
  return options;
}

std::vector<int> mesh_sizes() {
  return ranks() == 4 ? std::vector<int>{1, 2, 2} : std::vector<int>{1, 1, ranks()};
}

}  // namespace

TEST_CASE("a step of training allocates once and waits for nothing") {
  cuda_context ctx(world(), mesh_sizes(), 0, small_workspace());
  trainer one(ctx);
  one.step();
  one.step();
  ctx.finish();
  float const first = item(one.loss);
  auto const allocations = stand_in::count().driver_allocations;
  auto const waits = host_waits();
  ctx.ledger().clear();
  one.step();
  CHECK(stand_in::count().driver_allocations == allocations);
  // a collective asks once whether an earlier one has ended
  auto const collectives = ranks() > 1 ? std::int64_t(ctx.ledger().entries.size()) : 0;
  CHECK(host_waits() <= waits + collectives);
  CHECK(item(one.loss) < first);
}

TEST_CASE("a captured step of training gives the bits of taking it") {
  cuda_context ctx(world(), mesh_sizes(), 0, small_workspace());
  trainer taken(ctx), replayed(ctx);
  taken.step();
  replayed.step();
  CHECK(same_bits(taken.parameters(), replayed.parameters()));
  auto graph = capture(ctx, [&] { replayed.step(); });
  CHECK(same_bits(taken.parameters(), replayed.parameters()));  // recorded, not run
  float before = item(taken.loss);
  for (int step = 0; step < 3; ++step) {
    taken.step();
    graph.replay();
    CHECK(same_bits(taken.parameters(), replayed.parameters()));
    CHECK(item(taken.loss) == item(replayed.loss));
    CHECK(item(replayed.loss) < before);
    before = item(replayed.loss);
  }
}
