// A whole step of training on a GPU, captured: forward, backward, synchronise, clipping, Adam.
// Replaying it gives the bits of taking it. tests/cuda/model_test.cpp counts, on stand-ins, what such
// a step asks of the driver.

#include <cstring>

#include "dtm/models/distogram_model.hpp"

#include "dtm/testing/draw.hpp"
#include "dtm/testing/full_tensor.hpp"
#include "dtm/train/adam.hpp"
#include "modules/backend.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

constexpr std::int64_t channels = 32, single_channels = 24, classes = 33, bins = 64;

template <class T>
using model_of =
    distogram_model<space_of<T>, channels, single_channels, channel_all_to_all, classes, bins>;

double one_hot(std::uint64_t key, place const& p) {
  std::uint64_t const count = std::uint64_t(p.extent.back());
  return bits(key, p.linear / count) % count == p.linear % count;
}

/// A model, its input and its optimiser, all of them the same for every trainer.
template <class T>
struct trainer {
  using model_type = model_of<T>;
  test_context& ctx;
  model_type model;
  typename model_type::batch_type batch;
  typename model_type::loss_type::Loss d_loss, loss;
  adam<model_type> optimiser;

  explicit trainer(test_context& where)
      : ctx(where),
        model(where, 2),
        batch(make_batch(where)),
        d_loss(where, extents{}),
        loss(where, extents{}),
        optimiser(where, drawn(model), {.learning_rate = 3e-3}) {
    accumulate_t<T> const one = 1;
    d_loss.copy_from_host(&one);
  }

  void step() {
    auto result = model.forward(ctx, batch);
    auto pending = zero_gradients(ctx, model);
    model.backward(ctx, std::move(result.saved), batch, d_loss, pending);
    auto gradients = synchronise(ctx, std::move(pending));
    clip_gradient_norm(ctx, gradients, 1.0);
    optimiser.step(ctx, model, gradients);
    ctx.memory().copy_within(loss.data(), result.loss.data(), std::size_t(loss.bytes()));
  }

  std::vector<T> parameters() {
    std::vector<T> all;
    for (auto const& view : named_parameters(model)) {
      auto const values = view.values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  static auto make_batch(test_context& ctx) {
    auto const bound = extents{bind<dtm::batch>(1), bind<tokens>(24), bind<conformers>(1)};
    typename model_type::batch_type b{
        {ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}};
    fill(b.res_type, one_hot, key_of(1, "res_type"));
    fill(b.features, draw_small_integer, key_of(1, "features"));
    fill(b.token_mask, draw_binary_mask, key_of(1, "token_mask"));
    fill(b.disto_mask, draw_binary_mask, key_of(1, "disto_mask"));
    fill(b.target, one_hot, key_of(1, "target"));
    return b;
  }
  static model_type& drawn(model_type& model) {
    for (auto const& view : named_parameters(model)) {
      std::vector<T> values;
      for (std::int64_t i = 0; i < view.count; ++i)
        values.push_back(T(float(
            draw_parameter(view.name, key_of(1, view.name), view.extents, std::uint64_t(i)))));
      view.assign(values);
    }
    return model;
  }
};

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_captured() {
  test_context ctx(world(), {1, 1, ranks()}, 0, test_options());
  trainer<T> taken(ctx), replayed(ctx);
  for (trainer<T>* each : {&taken, &replayed}) each->step();
  CHECK(same_bits(taken.parameters(), replayed.parameters()));
  taken.step();  // the second asks the driver for nothing
  replayed.step();
  ctx.finish();
  auto const asked = ctx.device().driver_allocations();
  taken.step();
  replayed.step();
  CHECK(ctx.device().driver_allocations() == asked);
  auto const before_capture = replayed.parameters();
  auto graph = capture(ctx, [&] { replayed.step(); });
  CHECK(graph.nodes() > 100);
  CHECK(same_bits(replayed.parameters(), before_capture));  // recorded, not run
  auto const first = double(item(taken.loss));
  for (int step = 0; step < 5; ++step) {
    taken.step();
    graph.replay();
    CHECK(same_bits(taken.parameters(), replayed.parameters()));
    CHECK(item(taken.loss) == item(replayed.loss));
  }
  CHECK(double(item(replayed.loss)) < first);
}

}  // namespace

TEST_CASE("a captured step of training gives the bits of taking it, fp32") {
  check_captured<float>();
}
TEST_CASE("a captured step of training gives the bits of taking it, bf16") {
  check_captured<bf16>();
}
