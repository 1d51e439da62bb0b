// Memory of triangle attention at sizes where nothing but pairs matters: what inference needs beside x
// and y, what is kept, and that peaks fall as 1/P: of the bias a rank has a panel at a time.

#include <cstdio>

#include "dtm/modules/triangle_attention.hpp"
#include "dtm/parameters/gradients.hpp"
#include "dtm/planned.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

using grid = mesh<dp, cp0, cp1>;
constexpr std::int64_t channels = 128, heads = 4, width = 32;
/// GPUs work on 65536 positions at a time, which are to be few among a rank's.
template <class Device>
constexpr std::int64_t n = std::is_same_v<Device, cuda> ? 18432 : 4608;

/// In pair tiles of a rank.
struct peaks {
  double infer = 0, forward = 0, backward = 0, kept = 0;
};

template <class Device>
using options_of = typename context<planned<Device>, grid>::options;
options_of<host> by_messages() {
  options_of<host> options;
  options.transport = comm::transport::messages;
  return options;
}

/// Of the first rank; all have the same.
template <class Node, class Schedule, class Device = host>
peaks on_mesh(int rows, int columns, options_of<Device> const& options = {}) {
  using S = space<float, grid, planned<Device>>;
  using module_type = triangle_attention<Node, S, channels, heads, width, Schedule>;
  comm::planned_world world(rows * columns, 0);
  context<planned<Device>, grid> ctx(world, {1, rows, columns}, 0, options);
  module_type const module(ctx);
  auto const bound = extents{bind<batch>(1), bind<tokens>(n<Device>)};
  typename module_type::X const x(ctx, bound);
  typename module_type::Mask const mask(ctx, bound);
  auto gradients = zero_gradients(ctx, module);
  double const tile = double(x.bytes());
  auto made = module.forward(ctx, x, mask);
  peaks result;
  result.kept = double(made.saved.bytes()) / tile;
  result.infer =
      double(measure(ctx, [&] { return module.infer(ctx, x, mask); }).peak.peak_bytes) / tile - 1;
  result.forward =
      double(measure(ctx, [&] { return module.forward(ctx, x, mask); }).peak.peak_bytes) / tile;
  result.backward =
      double(measure(ctx, [&] { return module.backward(ctx, std::move(made.saved), x, gradients); })
                 .peak.peak_bytes) /
      tile;
  std::printf(
      "triangle_attention %s, %d x %d: pair tiles: infer %.2f beside x and y, forward %.2f, "
      "backward %.2f beside what is kept, kept %.2f\n",
      Schedule::name, rows, columns, result.infer, result.forward, result.backward, result.kept);
  return result;
}

/// With more than one rank y, dy and dx travel.
template <class Node, class Schedule, class Device = host>
void falls_as_the_ranks(options_of<Device> const& options = {}) {
  peaks const one = on_mesh<Node, Schedule, Device>(1, 1, options);
  CHECK(one.infer <= 1);
  CHECK(one.kept <= 3);
  for (int side : {2, 3, 4, 8}) {
    peaks const many = on_mesh<Node, Schedule, Device>(side, side, options);
    CHECK(many.kept == Approx(one.kept).epsilon(1e-9));
    CHECK(many.infer <= 1);
    CHECK(many.forward <= one.forward + 1);
    CHECK(many.backward <= one.backward + 1);
  }
}

}  // namespace

TEST_CASE("memory of triangle attention with rows resident") {
  falls_as_the_ranks<starting, row_resident>();
  falls_as_the_ranks<ending, row_resident>();
}
TEST_CASE("memory of triangle attention with rows resident that travel by messages") {
  falls_as_the_ranks<starting, row_resident>(by_messages());
  falls_as_the_ranks<ending, row_resident>(by_messages());
}
TEST_CASE("memory of triangle attention with rows resident on GPUs") {
  falls_as_the_ranks<starting, row_resident, cuda>();
  falls_as_the_ranks<ending, row_resident, cuda>();
}
TEST_CASE("memory of triangle attention by a ring") {
  for (int side : {2, 3, 4, 8}) {
    peaks const one = on_mesh<starting, ring>(1, 1), many = on_mesh<starting, ring>(side, side);
    CHECK(many.kept == Approx(one.kept).epsilon(1e-9));
    CHECK(many.infer <= 4.5);
    CHECK(many.forward <= one.forward + 1.1);  // u that is on its way
    CHECK(many.backward <= one.backward + 1.1);
  }
}
