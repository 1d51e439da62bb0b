// Check level 3: an operand that is not finite on one rank is everyone's error, with the element's
// global index. The padding of planes is not looked at, and a pending maximum may be -infinity.

#include <cmath>
#include <string>

#include "dtm/host.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;
using line = mesh<cp0>;
template <class... P>
using rows = tensor<float, layout<line, shape<tokens, c<5>>, P...>>;

template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (replication_error const& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an operand is finite at check level 3") {
  comm::options settings = testing::world().settings();
  settings.level = comm::check_level::data;
  comm::world world(testing::world(), settings);
  context<host, line> ctx(world, {testing::ranks()});
  std::int64_t const n = 2 * testing::ranks();
  rows<shard<0>> x(ctx, extents{bind<tokens>(n)});
  for (float& value : x.to_local()) value = 1;
  CHECK(complaint([&] { apply<all_gather<cp0>>(ctx, x, "x"); }).empty());
  // planes: 5 channels on up to 9 ranks, padding is NaN from the fresh tensor
  auto const planes = apply<all_to_all<move<cp0, 1>>>(ctx, x, "x");
  CHECK(complaint([&] { apply<all_to_all<move<cp0, 0>>>(ctx, planes, "planes"); }).empty());

  if (testing::rank() == testing::ranks() - 1) x.to_local()(1, 3) = NAN;
  std::string const said = complaint([&] { apply<all_gather<cp0>>(ctx, x, "x"); });
  CHECK(said.find("[" + std::to_string(n - 1) + ", 3] of x is") != std::string::npos);
  CHECK_FALSE(complaint([&] { shift_along<cp0>(ctx, x, 1, "x").wait(); }).empty());

  rows<partial<max>> largest(ctx, extents{bind<tokens>(4)});
  for (float& value : largest.to_local()) value = -INFINITY;
  CHECK(complaint([&] { apply<all_reduce<cp0>>(ctx, largest); }).empty());
}
