// The code blocks of docs/backends.md, compiled and run; see pages_test.cpp.

#include <cmath>

#include "dtm/dtm.hpp"
#include "dtm/emulated.hpp"
#include "dtm/host.hpp"

#include "dtm/core/host_copy.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/serial/transition.hpp"
#include "dtm/testing/parity.hpp"

#include "install/find_cuda/square.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;

// [one_source]
template <class Device>
std::vector<float> transition_of_ones(comm::world& world) {
  using on = space<float, grid, Device>;
  context<Device, grid> ctx(world, {1, 1, world.size()});
  transition<on, 8, 16> module(ctx);
  for (auto const& p : named_parameters(module)) p.assign(std::vector<float>(p.count, 0.25f));
  pair_tensor<on, c<8>> x(ctx, extents{bind<batch>(1), bind<tokens>(12)});
  std::vector<float> values(std::size_t(x.size()), 1);
  x.copy_from_host(values.data());
  auto const [y, saved] = module.forward(ctx, x);
  y.copy_to_host(values.data());
  return values;
}
// [one_source]

TEST_CASE("backends.md: one source") {
  auto& world = dtm::testing::world();
  auto const there = transition_of_ones<emulated>(world);
  auto const here = transition_of_ones<host>(world);
  REQUIRE(there.size() == here.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    CHECK(std::abs(there[i] - here[i]) <= 1e-6f * std::abs(here[i]));
  CHECK(here[0] != 0);
}

TEST_CASE("backends.md: data") {
  auto& world = dtm::testing::world();
  context<emulated, grid> ctx(world, {1, 1, world.size()});
  using on = space<float, grid, emulated>;
  pair_tensor<on, c<8>> x(ctx, extents{bind<batch>(1), bind<tokens>(12)});
  auto y = x.clone();
  tensor<float, uniform_layout_t<grid, shape<>, replicate>, emulated> loss(ctx, extents{});
  float const two = 2;
  loss.copy_from_host(&two);
  // [data]
  std::vector<float> values(std::size_t(x.size()), 3);
  x.copy_from_host(values.data());  // values may change when it returns
  local::for_each(ctx, x.size(), square<float>{x.data(), y.data()});
  y.copy_to_host(values.data());    // waits for the device
  auto const seen = on_host(y);     // a copy; on the host backend the tile itself
  float const number = item(loss);  // of a tensor that has one element here
  // [data]
  CHECK((values[0] == 9 && seen[seen.size() - 1] == 9 && number == 2));
}

TEST_CASE("backends.md: memory of the host") {
  auto& world = dtm::testing::world();
  using on = space<float, grid>;
  // [arena]
  context<host, grid>::options options;
  options.arena_bytes = std::size_t(4) << 20;  // at once; more comes where it does not suffice
  context<host, grid> ctx(world, {1, 1, world.size()}, 0, options);
  transition<on, 8, 16> module(ctx);
  pair_tensor<on, c<8>> const x(ctx, extents{bind<batch>(1), bind<tokens>(12)});
  {
    auto const tag = ctx.memory().tagged("transition");
    auto const [y, saved] = module.forward(ctx, x);
  }
  auto const* const mark = ctx.memory().marks.find("transition");
  CHECK(mark->peak_bytes > 0);            // tensors and scratch, above what was there
  CHECK(mark->communication_bytes == 0);  // copies of messages: this module sends none
  CHECK(ctx.device().arena().system_allocations() == 1);
  // [arena]
}

TEST_CASE("testing.md: parity on another backend") {
  auto& world = dtm::testing::world();
  // [parity]
  context<emulated, grid> ctx(world, {1, 1, world.size()});
  transition<space<double, grid, emulated>, 6, 12> module(ctx);
  testing::serial_oracle const oracle(
      [](auto t) { return serial::transition<decltype(t)>(6, 12); });
  auto const report =
      testing::parity(ctx, module, oracle, extents{bind<batch>(2), bind<tokens>(12)});
  CHECK(report.passed());
  // [parity]
}
