// A whole step of training on the GPU backend: forward, backward, synchronise, clipping, Adam. After
// the first ones nothing is allocated and the host waits for nothing, so that a step can be captured;
// replaying it gives the bits of taking it.

#include "gpu/trainer.hpp"
#include "on_gpu.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

constexpr std::int64_t classes = 5, bins = 6;
using model_type =
    distogram_model<space<float, grid, cuda>, 8, 6, pair_schedules<>, classes, bins>;

struct small_trainer : trainer<cuda_context, model_type> {
  explicit small_trainer(cuda_context& ctx) : trainer(ctx, 1, 8, 1e-2) {}
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
  small_trainer one(ctx);
  one.step();
  one.step();
  ctx.finish();
  float const first = item(one.loss);
  auto const allocations = stand_in::count().driver_allocations;
  auto const waits = host_waits(), asks = host_asks();
  ctx.ledger().clear();
  one.step();
  CHECK(stand_in::count().driver_allocations == allocations);
  CHECK(host_waits() == waits);
  // a collective asks which of the earlier ones have ended: each of them, and one that has not
  auto const collectives = ranks() > 1 ? std::int64_t(ctx.ledger().entries.size()) : 0;
  CHECK(host_asks() <= asks + 2 * collectives);
  CHECK(item(one.loss) < first);
}

TEST_CASE("a captured step of training gives the bits of taking it") {
  cuda_context ctx(world(), mesh_sizes(), 0, small_workspace());
  small_trainer taken(ctx), replayed(ctx);
  taken.step();
  replayed.step();
  CHECK(taken.has_parameters_of(replayed));
  auto graph = capture(ctx, [&] { replayed.step(); });
  CHECK(taken.has_parameters_of(replayed));  // recorded, not run
  float before = item(taken.loss);
  for (int step = 0; step < 3; ++step) {
    taken.step();
    graph.replay();
    CHECK(taken.has_parameters_of(replayed));
    CHECK(item(taken.loss) == item(replayed.loss));
    CHECK(item(replayed.loss) < before);
    before = item(replayed.loss);
  }
}
