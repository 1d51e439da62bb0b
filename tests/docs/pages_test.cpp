// The code blocks of docs/, compiled and run. What is between two lines "// [name]" is in a page.

#include "dtm/dtm.hpp"
#include "dtm/host.hpp"

#include "dtm/comm/agreement.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/ops/elementwise.hpp"
#include "dtm/testing/parity.hpp"

#include "own_module/gated_pair.hpp"
#include "own_module/serial.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;

// [vocabulary]
struct ligands : dim<"L"> {};  // a dimension of one's own
using grid = mesh<dp, cp0, cp1>;
template <int C>
using pair = layout<grid, shape<batch, tokens, tokens, c<C>>, shard<0>, shard<1>, shard<2>>;
template <int C>
using single = layout<grid, shape<batch, tokens, c<C>>, shard<0>, shard<1>, replicate>;
// [vocabulary]

namespace {

std::vector<int> sizes() {
  switch (dtm::testing::ranks()) {
    case 1:
      return {1, 1, 1};
    case 4:
      return {1, 2, 2};
    default:
      return {1, 2, 3};
  }
}

// [algebra]
// cp1 shards the columns j of a pair and the tokens j of a column form: their sum is pending on cp1
using column = layout<grid, shape<batch, tokens, c<4>>, shard<0>, replicate, shard<1>>;
using product = contraction_layout_t<"bijc,bjd->bicd", pair<8>, column>;
using expected = layout<grid, shape<batch, tokens, c<8>, c<4>>, shard<0>, shard<1>, partial<sum>>;
static_assert(std::is_same_v<product, expected>);
// [algebra]

using z = tensor<float, pair<8>>;

// [cotangents]
using s = tensor<float, single<8>>;
using terms = layout<grid, shape<batch, tokens, c<8>>, shard<0>, shard<1>, partial<sum>>;
static_assert(std::is_same_v<cotangent_t<z>, z>);                     // shards stay
static_assert(std::is_same_v<cotangent_t<s>, tensor<float, terms>>);  // replicate, partial<sum>
// [cotangents]

}  // namespace

TEST_CASE("types.md") {
  auto& world = dtm::testing::world();
  // [context]
  context<host, grid> ctx(world, sizes());  // {dp, cp0, cp1}; the product is the number of ranks
  auto const bound = extents{bind<batch>(1), bind<tokens>(12)};
  tensor<float, pair<8>> z(ctx, bound);
  // [context]
  // [tile]
  auto const held = z.tile();  // begin and end of every dimension, in global indices
  auto const local = z.to_local();
  for (std::int64_t i = 0; i < local.extent[1]; ++i)
    for (std::int64_t j = 0; j < local.extent[2]; ++j)
      for (std::int64_t c = 0; c < 8; ++c) {
        bool const same = held.begin[1] + i == held.begin[2] + j;
        local(0, i, j, c) = same ? 1 : 0;
      }
  // [tile]
  auto const total = apply<all_reduce<cp0, cp1>>(ctx, sum_over<1>(ctx, sum_over<1>(ctx, z)));
  CHECK(total.to_local()(0, 0) == 12);
  // [from_local]
  auto again = from_local<pair<8>>(ctx, z.data(), z.size(), z.global());
  // [from_local]
  CHECK(again.data()[0] == z.data()[0]);
}

TEST_CASE("collectives.md") {
  auto& world = dtm::testing::world();
  context<host, grid> ctx(world, sizes());
  tensor<float, pair<8>> z(ctx, extents{bind<batch>(1), bind<tokens>(12)});
  for (float& value : z.to_local()) value = 1;
  // [apply]
  auto const rows = apply<all_gather<cp1>>(ctx, z, "z");  // cp0: shard<1>  cp1: replicate
  auto later = begin<transpose<cp0, cp1>>(ctx, z, "z");   // on its way; z must stay as it is
  auto const turned = later.wait();
  // [apply]
  CHECK((rows.size() == z.size() * sizes()[2] && turned.size() == z.size()));
  // [ledger]
  auto const& ledger = ctx.ledger();
  CHECK(ledger.count("all_gather") == 1);
  std::int64_t const sent = ledger.sent_bytes();  // by this rank, since clear()
  // [ledger]
  CHECK((sent > 0) == (world.size() > 1));
  // [agreed]
  int const mine = world.rank() == 0 ? 3 : -1;
  comm::agreed<int> const steps = comm::agree_on(world, mine);  // rank 0 decides
  for (int step = 0; step < steps; ++step) ctx.along_all().barrier({"barrier"}).wait();
  // [agreed]
  CHECK(steps.get() == 3);
  // [agree]
  auto const length = comm::agree(world, [&] { return std::string("may throw").size(); });
  // [agree]
  CHECK(length == 9);
  // [world]
  auto settings = comm::options::from_environment();  // DTM_DEADLINE, DTM_CHECK_LEVEL
  settings.deadline_seconds = 60;
  settings.level = comm::check_level::signatures;
  comm::world fresh(world, settings);
  fresh.run([&] {
    context<host, grid> inner(fresh, sizes());
    // the program; an exception of one rank ends all of them
  });
  // [world]
  CHECK(!fresh.has_failed());
}

TEST_CASE("testing.md") {
  auto& world = dtm::testing::world();
  // [parity]
  context<host, grid> ctx(world, sizes());
  example::gated_pair<space<double, grid>, 6, 5> module(ctx);
  testing::serial_oracle const oracle(
      [](auto t) { return example::serial_gated_pair<decltype(t)>(6, 5); });
  auto const bound = extents{bind<batch>(2), bind<tokens>(12)};

  auto const report = testing::parity(ctx, module, oracle, bound);
  INFO(report.text());
  CHECK(report.passed());
  // [parity]
}
