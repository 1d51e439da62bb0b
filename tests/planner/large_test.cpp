// Meshes and extents that no test machine has: by the formulas of triangle multiplication, and what a
// transition holds.

#include "dtm/modules/transition.hpp"
#include "dtm/modules/triangle_multiplication.hpp"
#include "dtm/parameters/gradients.hpp"
#include "dtm/planned.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

using grid = mesh<dp, cp0, cp1>;

// [triangle]
/// What every rank of an 8 x 8 mesh needs for a forward pass.
template <class T, class Device>
std::vector<measurement> triangle_on_64(std::int64_t n, planned_options<Device> options = {}) {
  using S = space<T, grid, planned<Device>>;
  using module_type = triangle_multiplication<outgoing, S, 128>;
  return comm::plan_ranks(64, [&](comm::planned_world& world) {
    context<planned<Device>, grid> ctx(world, {1, 8, 8}, 0, options);
    module_type const module(ctx);
    auto const bound = extents{bind<batch>(1), bind<tokens>(n)};
    typename module_type::X const x(ctx, bound);
    typename module_type::Mask const mask(ctx, bound);
    return measure(ctx, [&] { return module.forward(ctx, x, mask); });
  });
}
// [triangle]

}  // namespace

TEST_CASE("triangle multiplication of 30 000 tokens on 64 ranks") {
  std::int64_t const tile = std::int64_t(3750) * 3750, channels = 128;
  for (auto const& rank : triangle_on_64<bf16, cuda>(30000)) {
    // 3 (1 - 1/P) u sent; 64 ranks have two of the 128 channels each
    CHECK(rank.sent_bytes() == 3 * tile * channels * 2 * 63 / 64);
    CHECK(rank.collectives() == 3);
    // y, and kept: x, o, a, b, the mask and four statistics a position
    CHECK(rank.kept_bytes == tile * (5 * channels * 2 + 2 + 4 * 4));
    CHECK(rank.peak.communication_bytes == 0);
  }
  planned_options<host> options;
  options.ranks_per_node = 8;
  for (auto const& rank : triangle_on_64<double, host>(30000, options)) {
    CHECK(rank.sent_bytes() == 3 * tile * channels * 8 * 63 / 64);
    CHECK(rank.kept_bytes == tile * (5 * channels * 8 + 8 + 4 * 8));
    CHECK(rank.peak.communication_bytes == 4 * tile * channels * 8);
  }
  options.ranks_per_node = 0;  // on one node tiles are read where they lie
  for (auto const& rank : triangle_on_64<double, host>(30000, options))
    CHECK(rank.peak.communication_bytes == 0);
  options.ranks_per_node = 8;
  options.transport = comm::transport::shared_memory;
  CHECK_THROWS_AS((triangle_on_64<double, host>(30000, options)), mesh_error);
}

TEST_CASE("inference of a triangle multiplication gives work to all of 64 ranks") {
  using S = space<bf16, grid, planned<cuda>>;
  using module_type = triangle_multiplication<outgoing, S, 128>;
  auto const ranks = comm::plan_ranks(64, [&](comm::planned_world& world) {
    context<planned<cuda>, grid> ctx(world, {1, 8, 8});
    module_type const module(ctx);
    auto const bound = extents{bind<batch>(1), bind<tokens>(30000)};
    module_type::X const x(ctx, bound);
    module_type::Mask const mask(ctx, bound);
    return measure(ctx, [&] { return module.infer(ctx, x, mask); });
  });
  // of four groups of 32 channels half of the ranks would have no plane; there are two of 64
  for (auto const& rank : ranks) {
    CHECK(rank.collectives() == 6);
    CHECK(rank.sent_bytes() == 3 * rank.kept_bytes * 63 / 64);
    CHECK(double(rank.peak.peak_bytes) < 3.1 * double(rank.kept_bytes));  // y is what is kept
  }
}

TEST_CASE("planned bytes grow with the square of the tokens") {
  auto const less = triangle_on_64<float, cuda>(7680), more = triangle_on_64<float, cuda>(15360);
  for (std::size_t rank = 0; rank < less.size(); ++rank)
    CHECK(more[rank].kept_bytes == 4 * less[rank].kept_bytes);
}

TEST_CASE("a transition of 30 000 tokens holds little beside its operands") {
  auto const holds_little = [](auto device) {
    using S = space<bf16, grid, planned<decltype(device)>>;
    comm::planned_world world(64, 0);
    context<planned<decltype(device)>, grid> ctx(world, {1, 8, 8});
    transition<S, 128, 512> const module(ctx);
    pair_tensor<S, c<128>> const x(ctx, extents{bind<batch>(1), bind<tokens>(30000)});
    auto gradients = zero_gradients(ctx, module);
    auto made = module.forward(ctx, x);
    auto const peak_of = [&](auto const& work) {
      return double(measure(ctx, work).peak.peak_bytes) / double(x.bytes());
    };
    // two statistics a position are a thirty-second of a tile of bf16
    CHECK(peak_of([&] { return module.infer(ctx, x); }) < 1.1);    // y
    CHECK(peak_of([&] { return module.forward(ctx, x); }) < 2.1);  // y and x, kept
    CHECK(peak_of([&] { return module.backward(ctx, std::move(made.saved), x, gradients); }) < 1.1);
  };
  holds_little(host{});
  holds_little(cuda{});
}
