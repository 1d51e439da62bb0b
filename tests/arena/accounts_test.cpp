// The accounts of memory: tensors, copies of messages, both; peaks by name; and memory that runs out
// on one rank, which is everyone's error.

#include <string>

#include "comm/fresh_world.hpp"
#include "dtm/core/space.hpp"
#include "dtm/host.hpp"
#include "support/catch.hpp"
#include "support/meshes.hpp"
#include "support/runner.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using grid = mesh<dp, cp0, cp1>;
using context_type = context<host, grid>;
using pair_tile = pair_tensor<space<float, grid>, c<8>>;

auto extent(std::int64_t n) {
  return extents{bind<batch>(1), bind<tokens>(n)};
}

}  // namespace

TEST_CASE("copies of messages are on an account of their own") {
  context_type ctx(world(), {1, 1, world().size()});
  pair_tile x(ctx, extent(16));
  ctx.memory().fill_bytes(x.data(), 0, std::size_t(x.bytes()));
  auto& memory = ctx.memory();
  std::int64_t const held = memory.current_bytes;
  CHECK(memory.communication.current_bytes == 0);
  memory.restart_peak();
  auto& ranks = ctx.along_all();
  std::vector<float> sum(1000), mine(1000, 1.0f);
  auto begun = ranks.all_reduce(mine.data(), sum.data(), 1000, comm::reduction::sum,
                                comm::call{"all_reduce", "x"});
  std::int64_t const copied = world().size() > 1 ? 4000 : 0;
  CHECK(memory.communication.current_bytes == copied);
  CHECK(memory.current_bytes == held);
  begun.wait();
  CHECK(memory.communication.current_bytes == 0);
  CHECK(memory.communication.peak_bytes == copied);
  CHECK(memory.peak_bytes == held);
  CHECK(memory.together.peak_bytes == held + copied);
  CHECK(memory.together.current_bytes == held);
}

TEST_CASE("peaks by name") {
  context_type ctx(world(), {1, 1, world().size()});
  auto& memory = ctx.memory();
  pair_tile kept(ctx, extent(16));
  std::int64_t const one = kept.bytes();
  memory.restart_peak();
  pair_tile const before_any(ctx, extent(16));
  {
    auto const outer = memory.tagged("outer");
    pair_tile a(ctx, extent(16));
    for (int i = 0; i < 2; ++i) {
      auto const inner = memory.tagged("inner");
      CHECK(std::string(memory.tag) == "inner");
      pair_tile b(ctx, extent(16)), c(ctx, extent(16));
      b.release();
      pair_tile d(ctx, extent(16));
    }
    CHECK(std::string(memory.tag) == "outer");
    a.release();
    {
      auto const inner = memory.tagged("inner");
      pair_tile b(ctx, extent(16));
    }
  }
  CHECK(std::string(memory.tag) == "");
  REQUIRE(memory.marks.size() == 2);
  auto const* const inner = memory.marks.find("inner");
  REQUIRE(inner != nullptr);
  CHECK(inner->peak_bytes == 2 * one);
  CHECK(inner->communication_bytes == 0);
  CHECK(inner->times == 3);
  auto const* const outer = memory.marks.find("outer");
  REQUIRE(outer != nullptr);
  CHECK(outer->peak_bytes == 3 * one);
  CHECK(outer->times == 1);
  CHECK(memory.peak_bytes == 5 * one);  // of the whole, as if nothing had been tagged
  CHECK(memory.marks.find("nobody") == nullptr);
  memory.marks.clear();
  CHECK(memory.marks.size() == 0);
}

TEST_CASE("more names than marks") {
  context_type ctx(world(), {1, 1, world().size()});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < memory_marks::most + 5; ++i) names.push_back(std::to_string(i));
  for (auto const& name : names) {
    auto const tag = ctx.memory().tagged(name.c_str());
    ctx.memory().give_back(ctx.memory().take(100), 100);
  }
  auto const& marks = ctx.memory().marks;
  CHECK(marks.size() == memory_marks::most);
  CHECK(std::string(marks[memory_marks::most - 1].tag) == "(others)");
  CHECK(marks[memory_marks::most - 1].times == 6);
}

TEST_CASE("memory that runs out on one rank is everyone's error") {
  context_type::options chosen;
  if (rank() == world().size() - 1) chosen.arena_limit = 16 << 20;
  auto const got = attempt(settings(comm::check_level::cheap), [&](comm::world& fresh) {
    context_type ctx(fresh, {1, 1, fresh.size()}, 0, chosen);
    auto const tag = ctx.memory().tagged("the_tag");
    pair_tile x(ctx, extent(16)), y(ctx, extent(4096));
    ctx.along_all().barrier({"barrier", ""}).wait();
  });
  INFO(got.text);
  if (rank() == world().size() - 1)
    CHECK(got.kind == comm::failure_kind::memory);
  else
    CHECK(got.kind == comm::failure_kind::peer);
  CHECK(got.says("no room for " +
                 std::to_string(std::int64_t(4096) * 4096 / world().size() * 8 * 4) +
                 " bytes of the_tag"));
}

TEST_CASE("a reservation that one rank cannot make is everyone's error") {
  context_type::options chosen;
  if (rank() == 0) chosen.arena_bytes = std::size_t(1) << 52;
  std::string text;
  (void)attempt(settings(comm::check_level::signatures), [&](comm::world& fresh) {
    try {
      context_type ctx(fresh, {1, 1, fresh.size()}, 0, chosen);
    } catch (memory_error const& e) {
      text = e.what();
    }
  });
  INFO(text);
  CHECK(text.find("options.arena_bytes") != std::string::npos);
}
