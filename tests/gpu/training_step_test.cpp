// A whole step of training on a GPU, captured: forward, backward, synchronise, clipping, Adam.
// Replaying it gives the bits of taking it. tests/cuda/model_test.cpp counts, on stand-ins, what such
// a step asks of the driver.

#include "gpu/trainer.hpp"
#include "support/backend.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

constexpr std::int64_t channels = 32, single_channels = 24, classes = 33, bins = 64;

template <class T>
using model_of =
    distogram_model<space_of<T>, channels, single_channels, pair_schedules<>, classes, bins>;

template <class T>
void check_captured() {
  test_context ctx(world(), {1, 1, ranks()}, 0, test_options());
  using trainer_type = trainer<test_context, model_of<T>>;
  trainer_type taken(ctx, 2, 24, 3e-3), replayed(ctx, 2, 24, 3e-3);
  for (trainer_type* each : {&taken, &replayed}) each->step();
  CHECK(taken.has_parameters_of(replayed));
  taken.step();  // the second asks the driver for nothing
  replayed.step();
  ctx.finish();
  auto const asked = ctx.device().driver_allocations();
  taken.step();
  replayed.step();
  CHECK(ctx.device().driver_allocations() == asked);
  auto graph = capture(ctx, [&] { replayed.step(); });
  CHECK(graph.nodes() > 100);
  CHECK(taken.has_parameters_of(replayed));  // recorded, not run
  auto const first = double(item(taken.loss));
  for (int step = 0; step < 5; ++step) {
    taken.step();
    graph.replay();
    CHECK(taken.has_parameters_of(replayed));
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
