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

comm::world checking_world() {
  comm::options settings = testing::world().settings();
  settings.level = comm::check_level::data;
  return comm::world(testing::world(), settings);
}

}  // namespace

TEST_CASE("from_local: one rank's block of the wrong size is everyone's error") {
  comm::world world = checking_world();
  context<host, small::grid> ctx(world, {1, 1, testing::ranks()});
  std::vector<float> const block(12, 1.f);
  bool const last = testing::rank() == testing::ranks() - 1;
  CHECK(throws<layout_error>([&] {
    from_local<replicated>(ctx, block.data(), last ? 11 : 12, {{1, 12}});
  }));
}

TEST_CASE("from_local at level 3: what is claimed to be replicated has equal bits") {
  comm::world world = checking_world();
  context<host, small::grid> ctx(world, {1, 1, testing::ranks()});
  std::vector<float> block(12, 1.f);
  CHECK(from_local<replicated>(ctx, block.data(), 12, {{1, 12}}).size() == 12);
  if (testing::rank() == testing::ranks() - 1) block[5] = std::nextafter(1.f, 2.f);
  bool const alone = testing::ranks() == 1;
  CHECK(throws<replication_error>([&] {
          from_local<replicated>(ctx, block.data(), 12, {{1, 12}});
        }) == !alone);
}
