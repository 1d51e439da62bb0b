// Check level 3: an operand that is not finite on one rank is everyone's error, with the element's
// global index. The padding of planes is not looked at, and a pending maximum may be -infinity.

#include <cmath>
#include <string>
#include <vector>

#include "support/backend.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;
using line = mesh<cp0>;
template <class... P>
using rows = tensor<float, layout<line, shape<tokens, c<5>>, P...>, testing::device>;

template <class X>
void fill(X& x, std::vector<float> const& values) {
  x.copy_from_host(values.data());
}

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
  context<testing::device, line> ctx(world, {testing::ranks()}, 0, testing::test_options());
  std::int64_t const n = 2 * testing::ranks();
  rows<shard<0>> x(ctx, extents{bind<tokens>(n)});
  std::vector<float> values(10, 1.f);
  fill(x, values);
  CHECK(complaint([&] { apply<all_gather<cp0>>(ctx, x, "x"); }).empty());
  // planes: 5 channels on up to 9 ranks, padding is NaN from the fresh tensor
  auto const planes = apply<all_to_all<move<cp0, 1>>>(ctx, x, "x");
  CHECK(complaint([&] { apply<all_to_all<move<cp0, 0>>>(ctx, planes, "planes"); }).empty());

  if (testing::rank() == testing::ranks() - 1) values[5 + 3] = NAN;
  fill(x, values);
  std::string const said = complaint([&] { apply<all_gather<cp0>>(ctx, x, "x"); });
  CHECK(said.find("[" + std::to_string(n - 1) + ", 3] of x is") != std::string::npos);
  CHECK_FALSE(complaint([&] { shift_along<cp0>(ctx, x, 1, "x").wait(); }).empty());

  rows<partial<max>> largest(ctx, extents{bind<tokens>(4)});
  fill(largest, std::vector<float>(4 * 5, -INFINITY));
  CHECK(complaint([&] { apply<all_reduce<cp0>>(ctx, largest); }).empty());
}
