// Which path is in use: the widest that the processor has, unless narrower ones are asked for, and
// the same on all ranks.

#include "dtm/core/space.hpp"
#include "dtm/host.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {
using grid = mesh<dp, cp0, cp1>;
}

TEST_CASE("a context takes the widest instructions that there are") {
  context<host, grid> ctx(world(), {1, 1, world().size()});
  CHECK(ctx.device().instructions() == widest_instructions());
  if (world().rank() == 0) std::printf("in use: %s\n", name_of(ctx.device().instructions()));
}

TEST_CASE("narrower ones can be asked for") {
  context<host, grid> ctx(world(), {1, 1, world().size()}, 0,
                          {.widest = instruction_set::portable});
  CHECK(ctx.device().instructions() == instruction_set::portable);
}

TEST_CASE("ranks agree on the narrowest") {
  auto const widest =
      world().rank() + 1 == world().size() ? instruction_set::portable : instruction_set::avx512;
  context<host, grid> ctx(world(), {1, 1, world().size()}, 0, {.widest = widest});
  CHECK(ctx.device().instructions() == instruction_set::portable);
}
