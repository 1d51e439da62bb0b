// apply takes over an operand that is not needed any more: the same result and the same entry in the
// ledger as of an operand that stays; where the group has one rank, in the same memory.

#include "reference.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class Collective, class X>
void same_as_of_a_copy(grid_context& ctx, X x, comm::group const& group, std::string const& name) {
  fill(x);
  auto const where = comm::call_site::current();
  auto const peak_of = [&](auto&& run) {
    auto const before = ctx.memory().current_bytes;
    ctx.memory().restart_peak();
    auto result = run();
    return std::pair(std::move(result), ctx.memory().peak_bytes - before);
  };
  auto const [kept, peak_beside] = peak_of([&] { return apply<Collective>(ctx, x, "x", where); });
  auto const* const memory_of_x = static_cast<void const*>(x.data());
  auto const held = ctx.memory().current_bytes;
  auto const own = x.bytes();
  auto const [given, peak] =
      peak_of([&] { return apply<Collective>(ctx, std::move(x), "x", where); });
  INFO(mesh_text(ctx.where().sizes) << " " << name);
  CHECK(ctx.memory().current_bytes == held - own + given.bytes());
  judge(compare(given, content_of<typename X::layout_type>(), 0), "of the operand that was given");
  judge(compare(kept, content_of<typename X::layout_type>(), 0), "of the operand that stays");
  auto const& entries = ctx.ledger().entries;
  CHECK(entries[entries.size() - 1] == entries[entries.size() - 2]);
  if (group.size() == 1) CHECK(memory_of_x == given.data());
  if (group.shares_memory()) {  // nothing but operand and result is ever there
    CHECK(peak_beside == kept.bytes());
    CHECK(peak == given.bytes());
  } else {
    CHECK(peak == (group.size() == 1 ? 0 : std::max(own, peak_beside - own)));
  }
}

}  // namespace

TEST_CASE("an operand that is not needed any more") {
  using rows_and_columns =
      layout<grid, shape<batch, tokens, tokens, c<5>>, shard<0>, shard<1>, shard<2>>;
  using deal = all_to_all<move<cp0, 3>, move<cp1, 3>>;
  using deal_rows = all_to_all<move<cp0, 3>>;
  using turn = transpose<cp0, cp1>;
  for (auto const& sizes : meshes()) {
    auto ctx = on_mesh(sizes);
    auto const make = [&] {
      int const n = ctx.where().ranks();
      return tensor<float, rows_and_columns>(ctx, extents{bind<batch>(n), bind<tokens>(2 * n)});
    };
    same_as_of_a_copy<deal>(ctx, make(), ctx.along<cp0, cp1>(), "channels over both axes");
    same_as_of_a_copy<deal_rows>(ctx, make(), ctx.along<cp0>(), "channels over rows");
    same_as_of_a_copy<turn>(ctx, make(), ctx.along<cp0, cp1>(), "transposed");
  }
}
