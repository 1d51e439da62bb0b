// from_local's claim is verified between ranks: a wrong size on one rank, replicas that are none.

#include <vector>

#include "small_model.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;
using replicated = layout<small::grid, shape<batch, tokens>, shard<0>, replicate, replicate>;

template <class Fault, class F>
bool throws(F f) {
  try {
    f();
  } catch (Fault const&) {
    return true;
  }
  return false;
}

/// from_local of numbers in the memory of the device.
auto claimed(small::small_context& ctx, std::vector<float> const& block, std::int64_t count) {
  scratch<float> local(ctx.memory(), std::int64_t(block.size()));
  ctx.memory().copy_from_host(local.data(), block.data(), block.size() * sizeof(float));
  return from_local<replicated>(ctx, local.data(), count, {{1, 12}});
}

comm::world checking_world() {
  comm::options settings = testing::world().settings();
  settings.level = comm::check_level::data;
  return comm::world(testing::world(), settings);
}

}  // namespace

TEST_CASE("from_local: one rank's block of the wrong size is everyone's error") {
  comm::world world = checking_world();
  auto ctx = small::on_mesh(world);
  std::vector<float> const block(12, 1.f);
  bool const last = testing::rank() == testing::ranks() - 1;
  CHECK(throws<layout_error>([&] { claimed(ctx, block, last ? 11 : 12); }));
}

TEST_CASE("from_local at level 3: what is claimed to be replicated has equal bits") {
  comm::world world = checking_world();
  auto ctx = small::on_mesh(world);
  std::vector<float> block(12, 1.f);
  CHECK(claimed(ctx, block, 12).size() == 12);
  if (testing::rank() == testing::ranks() - 1) block[5] = std::nextafter(1.f, 2.f);
  bool const alone = testing::ranks() == 1;
  CHECK(throws<replication_error>([&] { claimed(ctx, block, 12); }) == !alone);
}
