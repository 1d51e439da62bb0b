// What the ledger says of each typed collective: who, along which axes, how much, from where; and
// in flight: several at once, in any order of waits, at every check level.

#include <cmath>
#include <string_view>

#include "reference.hpp"

using namespace dtm;
using namespace reference;

namespace {

using pair_shape = shape<batch, tokens, tokens, c<5>>;
template <class... P>
using placed = grid_tensor<float, layout<grid, pair_shape, P...>>;
using rows_and_columns = placed<shard<0>, shard<1>, shard<2>>;

template <class X>
X numbers(grid_context& ctx) {
  int const ranks = ctx.where().ranks();
  X x(ctx, extents{bind<batch>(ctx.where().sizes[0]), bind<tokens>(2 * ranks)});
  fill(x);
  return x;
}

/// The only entry since the last call, compared with what is expected of it.
void entry_is(grid_context& ctx, char const* operation, char const* axes, std::int64_t count,
              std::int64_t sent, std::int64_t stays, unsigned line) {
  INFO(mesh_text(ctx.where().sizes) << ", " << operation << " on " << axes);
  auto const entries = std::exchange(ctx.ledger().entries, {});
  REQUIRE(entries.size() == 1);
  auto const& entry = entries[0];
  CHECK(entry.operation == operation);
  CHECK(entry.axes == axes);
  CHECK(entry.tensor == "z");
  CHECK(entry.bytes_per_element == 4);
  CHECK(entry.count == count);
  CHECK(entry.sent_elements == sent);
  CHECK(entry.sent_bytes() == 4 * sent);
  CHECK(entry.self_elements == stays);
  CHECK(std::string_view(entry.file).ends_with("ledger_test.cpp"));
  CHECK(entry.line < line);
  CHECK(entry.line + 3 >= line);  // the call stands just before this one
}

std::int64_t over_all_ranks(grid_context& ctx, std::int64_t mine) {
  std::int64_t total = 0;
  everyone(ctx).all_reduce(&mine, &total, 1, comm::reduction::sum, {"sum"}).wait();
  ctx.ledger().clear();
  return total;
}

}  // namespace

TEST_CASE("the ledger of reductions and gathers") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    int const rows = sizes[1], columns = sizes[2];
    auto const terms = numbers<placed<shard<0>, partial<sum>, partial<sum>>>(ctx);
    auto const z = numbers<rows_and_columns>(ctx);
    std::int64_t const all = terms.size(), tile = z.size();

    (void)apply<all_reduce<cp0, cp1>>(ctx, terms, "z");
    entry_is(ctx, "all_reduce", "cp0*cp1", all, 2 * all * (rows * columns - 1) / (rows * columns),
             0, __LINE__);
    (void)apply<reduce_scatter<cp1, 2>>(ctx, terms, "z");
    entry_is(ctx, "reduce_scatter", "cp1", all / columns, all / columns * (columns - 1), 0,
             __LINE__);
    auto const row = apply<all_gather<cp1>>(ctx, z, "z");
    entry_is(ctx, "all_gather", "cp1", tile, tile * (columns - 1), 0, __LINE__);
    auto const whole = apply<all_gather<cp0>>(ctx, row, "z");
    entry_is(ctx, "all_gather", "cp0", tile * columns, tile * columns * (rows - 1), 0, __LINE__);
    (void)apply<broadcast<cp0>>(ctx, whole, "z");
    entry_is(ctx, "broadcast", "cp0", whole.size(), whole.size() * (rows - 1) / rows, 0, __LINE__);
    (void)apply<all_slice<cp0, 1>>(ctx, whole, "z");
    CHECK(ctx.ledger().entries.empty());
  }
}

TEST_CASE("the ledger of exchanges") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    std::int64_t const rows = sizes[1], columns = sizes[2], ranks = rows * columns;
    auto const z = numbers<rows_and_columns>(ctx);
    std::int64_t const tile = z.size(), all = tile * ctx.where().ranks();

    (void)apply<all_to_all<move<cp1, 1>>>(ctx, z, "z");
    entry_is(ctx, "all_to_all", "cp1", tile, tile / columns * (columns - 1), tile / columns,
             __LINE__);
    // five channels: some ranks have one more than others, some none; together they move everything
    // but the 1/P at home
    auto const planes = apply<all_to_all<move<cp0, 3>, move<cp1, 3>>>(ctx, z, "z");
    {
      auto const entry = ctx.ledger().entries.at(0);
      CHECK(entry.axes == "cp0*cp1");
      CHECK(entry.count == tile);
      CHECK(entry.sent_elements + entry.self_elements == tile);
      CHECK(over_all_ranks(ctx, entry.sent_elements) == all / ranks * (ranks - 1));
    }
    (void)apply<all_to_all<move<cp0, 1>, move<cp1, 2>>>(ctx, planes, "z");
    {
      auto const entry = ctx.ledger().entries.at(0);
      CHECK(over_all_ranks(ctx, entry.sent_elements) == all / ranks * (ranks - 1));
    }
    (void)apply<transpose<cp0, cp1>>(ctx, z, "z");
    auto const entry = ctx.ledger().entries.at(0);
    CHECK(entry.operation == "transpose");
    CHECK(entry.sent_elements + entry.self_elements == tile);
    if (rows == columns)
      CHECK(entry.sent_elements == (ctx.coordinate<cp0>() == ctx.coordinate<cp1>() ? 0 : tile));
    ctx.ledger().clear();
  }
}

TEST_CASE("the ledger of shifts") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    auto const z = numbers<rows_and_columns>(ctx);
    for (int distance : {0, 1, -1}) {
      bool const stays = distance % sizes[2] == 0;
      (void)shift_along<cp1>(ctx, z, distance, "z").wait();
      entry_is(ctx, "ring_shift", "cp1", z.size(), stays ? 0 : z.size(), stays ? z.size() : 0,
               __LINE__);
    }
  }
}

TEST_CASE("several collectives are in flight at once, and wait in any order") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    constexpr content plain;
    auto z = numbers<rows_and_columns>(ctx);
    auto rows = begin<all_gather<cp1>>(ctx, z, "rows");
    auto columns = begin<all_gather<cp0>>(ctx, z, "columns");
    auto turned = begin<transpose<cp0, cp1>>(ctx, z, "turned");
    auto next = shift_along<cp1>(ctx, z, 1, "next");
    judge(compare(z, plain), "operand while it is on its way");
    auto moved = std::move(rows);
    (void)next.wait();
    judge(compare(turned.wait(), plain), "turned");
    judge(compare(moved.wait(), plain), "rows");
    judge(compare(columns.wait(), plain), "columns");
    judge(compare(z, plain), "operand");
  }
}

TEST_CASE("operands of one collective are results of another still on its way") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    auto z = numbers<rows_and_columns>(ctx);
    int const columns = sizes[2];
    // a ring: the next tile travels while this one is used
    std::int64_t seen = 0;
    for (int step = 0; step < columns; ++step) {
      auto next = shift_along<cp1>(ctx, z, 1, "ring");
      auto there = ctx.where();
      there.coordinates[2] = (there.coordinates[2] + step) % columns;
      judge(compare_from(there, z, content{}), "step " + std::to_string(step));
      seen += z.size();
      z = next.wait();
    }
    CHECK(seen == z.size() * columns);
    judge(compare(z, content{}), "once around");
  }
}

TEST_CASE(
    "what is unspecified is not a number from check level 2 on, and no collective lets it "
    "through") {
  for (auto const& sizes : meshes()) {
    for (auto level : {comm::check_level::none, comm::check_level::cheap,
                       comm::check_level::signatures, comm::check_level::data}) {
      comm::world ranks(dtm::testing::world().native(), {20, level});
      grid_context ctx = on_mesh(sizes, ranks);
      constexpr content plain;
      auto const z = numbers<rows_and_columns>(ctx);
      rows_and_columns fresh(ctx, z.global());
      if (level >= comm::check_level::signatures) {
        std::int64_t unspecified = 0;
        for (float value : on_host(fresh)) unspecified += std::isnan(value);
        CHECK(unspecified == fresh.size());
      }
      judge(compare(apply<all_gather<cp1>>(ctx, z, "z"), plain), "rows");
      judge(compare(apply<transpose<cp0, cp1>>(ctx, z, "z"), plain), "turned");
      auto const planes = apply<all_to_all<move<cp0, 3>, move<cp1, 3>>>(ctx, z, "z");
      judge(compare(planes, plain), "planes");
      judge(compare(apply<all_to_all<move<cp0, 1>, move<cp1, 2>>>(ctx, planes, "z"), plain),
            "back");
      using pending = placed<shard<0>, partial<sum>, shard<2>>;
      auto const terms = numbers<pending>(ctx);
      judge(compare(apply<all_reduce<cp0>>(ctx, terms, "z"), content_of<pending::layout_type>(),
                    bit<cp0>),
            "sum");
    }
  }
}
