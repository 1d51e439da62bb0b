// Sequences of ranks that were played one by one: those that fit, and every way in which they do not.

#include <algorithm>
#include <array>

#include "dtm/comm/communicator.hpp"
#include "dtm/modules/triangle_multiplication.hpp"
#include "dtm/planned.hpp"
#include "support/catch.hpp"

using namespace dtm;
using dtm::testing::contains;

static_assert(comm::communicator<comm::planned_group>);

namespace {

using grid = mesh<dp, cp0, cp1>;
using plan_context = context<planned<host>, grid>;

comm::call called(char const* operation, char const* tensor = "x") {
  return {operation, tensor, 0, comm::call_site("program.cpp", 7)};
}
/// An all_reduce of `count` numbers; operands of planned groups are not touched.
template <class... Axis>
void reduce(plan_context& ctx, std::int64_t count = 4, comm::reduction how = comm::reduction::sum) {
  double* const nothing = nullptr;
  ctx.along<Axis...>().all_reduce(nothing, nothing, count, how, called("all_reduce")).wait();
}

/// program(ctx) on every rank of a 1 x 2 x 3 mesh.
template <class Program>
void on_six(Program const& program) {
  comm::plan_ranks(6, [&](comm::planned_world& world) {
    plan_context ctx(world, {1, 2, 3});
    program(ctx);
  });
}

}  // namespace

TEST_CASE("sequences that fit") {
  int calls = 0;
  on_six([&](auto& ctx) {
    ++calls;
    reduce<cp0>(ctx);
    reduce<cp1>(ctx);
    reduce<dp>(ctx);  // alone
    reduce<cp0, cp1>(ctx, 8, comm::reduction::max);
    ctx.along_all().barrier(called("barrier")).wait();
    ctx.world().run([] {});
    comm::agree(ctx.world(), [] {});
    CHECK(comm::planned_agreement(ctx.world(), 3) == 3);
  });
  CHECK(calls == 6);
}

TEST_CASE("different operations, counts, reductions and roots") {
  CHECK_THROWS_AS(on_six([](auto& ctx) {
                    double* const nothing = nullptr;
                    if (ctx.world().rank() == 4)
                      ctx.along_all().all_gather(nothing, nothing, 4, called("all_gather")).wait();
                    else
                      ctx.along_all()
                          .all_reduce(nothing, nothing, 4, comm::reduction::sum,
                                      called("all_reduce"))
                          .wait();
                  }),
                  collective_mismatch);
  CHECK_THROWS_WITH(
      on_six([](auto& ctx) { reduce<cp1>(ctx, ctx.world().rank() == 4 ? 5 : 4); }),
      contains(
          "ranks 3, 5: all_reduce #1 on cp1 of \"x\", 4 x fp64, sum, called at program.cpp:7") &&
          contains("rank 4: all_reduce #1 on cp1 of \"x\", 5 x fp64") &&
          contains("differs in: count"));
  CHECK_THROWS_WITH(
      on_six([](auto& ctx) {
        reduce<cp1>(ctx);
        reduce<cp1>(ctx, 4, ctx.world().rank() == 1 ? comm::reduction::max : comm::reduction::sum);
      }),
      contains("rank 1: all_reduce #2 on cp1") && contains("differs in: reduction"));
  CHECK_THROWS_WITH(
      on_six([](auto& ctx) {
        double* const nothing = nullptr;
        int const root = ctx.template coordinate<cp1>() == 2 ? 1 : 0;
        ctx.template along<cp1>().broadcast(nothing, 4, root, called("broadcast")).wait();
      }),
      contains("differs in: root"));
}

TEST_CASE("an operation more, and one less") {
  CHECK_THROWS_WITH(on_six([](auto& ctx) {
                      reduce<cp0>(ctx);
                      if (ctx.world().rank() == 2) reduce<cp0>(ctx);
                    }),
                    contains("rank 2 calls all_reduce #2 on cp0") &&
                        contains("rank 5 has ended after 2 operations"));
  CHECK_THROWS_WITH(on_six([](auto& ctx) {
                      if (ctx.world().rank() != 3) reduce<cp0, cp1>(ctx);
                      reduce<cp1>(ctx);
                    }),
                    contains("and not all ranks of the group come to it") &&
                        contains("rank 3 calls all_reduce #1 on cp1"));
}

TEST_CASE("another order of groups is none of a group, unless ranks wait in a circle") {
  auto const turned_on = [](std::vector<int> const& turned) {
    on_six([&](auto& ctx) {
      bool const turns = std::count(turned.begin(), turned.end(), ctx.world().rank()) > 0;
      if (turns) reduce<cp1>(ctx);
      reduce<cp0>(ctx);
      if (!turns) reduce<cp1>(ctx);
    });
  };
  CHECK_NOTHROW(turned_on({0}));  // its peers on cp1 come when they have met theirs on cp0
  CHECK_THROWS_WITH(turned_on({0, 4}),
                    contains("collective mismatch: rank 0 calls all_reduce #1 on cp1") &&
                        contains("rank 1 calls all_reduce #1 on cp0"));
}

TEST_CASE("counts and partners") {
  CHECK_THROWS_WITH(on_six([](auto& ctx) {
                      double* const nothing = nullptr;
                      std::array<std::int64_t, 2> send{3, 3}, receive{3, 3};
                      if (ctx.world().rank() == 4)
                        send[0] = 2;  // rank 4 is 1 of 2 on cp0, with rank 1
                      ctx.template along<cp0>()
                          .all_to_all(nothing, std::span<std::int64_t const>(send), nothing,
                                      std::span<std::int64_t const>(receive), called("all_to_all"))
                          .wait();
                    }),
                    contains("the counts of all_to_all #1 on cp0 of \"x\", uneven x fp64") &&
                        contains("rank 4 sends 2 elements to rank 1, which expects 3"));
  CHECK_THROWS_WITH(
      on_six([](auto& ctx) {
        double* const nothing = nullptr;
        int const me = ctx.template coordinate<cp1>();
        int const to = (me + 1) % 3, from = (me + (ctx.world().rank() == 5 ? 1 : 2)) % 3;
        ctx.template along<cp1>().shift(nothing, nothing, 4, to, from, called("shift")).wait();
      }),
      contains("rank 4 sends to rank 5, which waits for rank 3"));
}

TEST_CASE("values that are planned differently, and meshes") {
  CHECK_THROWS_WITH(
      on_six([](auto& ctx) { comm::planned_agreement(ctx.world(), ctx.world().rank() / 5); }),
      contains("rank 5: agree_on"));
  CHECK_THROWS_AS(comm::plan_ranks(6,
                                   [](comm::planned_world& world) {
                                     int const side = world.rank() == 1 ? 2 : 3;
                                     plan_context ctx(world, {1, side, 6 / side});
                                   }),
                  collective_mismatch);
}

TEST_CASE("an error of a planned rank keeps its type and names the rank") {
  CHECK_THROWS_WITH(on_six([](auto& ctx) {
                      comm::agree(ctx.world(), [&] {
                        if (ctx.world().rank() == 2) throw file_error("x.cif cannot be opened");
                      });
                    }),
                    contains("x.cif cannot be opened (planned rank 2 of 6)"));
  CHECK_THROWS_AS(on_six([](auto& ctx) { comm::agree(ctx.world(), false, "no"); }), error);
  CHECK_THROWS_AS(comm::plan_ranks(4,
                                   [](comm::planned_world& world) {
                                     plan_context ctx(world, {1, 2, 3});
                                   }),
                  mesh_error);
  using module_type =
      triangle_multiplication<outgoing, space<float, grid, planned<host>>, 8, cannon>;
  CHECK_THROWS_AS(on_six([](auto& ctx) {
                    module_type module(ctx);
                    auto const bound = extents{bind<batch>(1), bind<tokens>(12)};
                    module.forward(ctx, typename module_type::X(ctx, bound),
                                   typename module_type::Mask(ctx, bound));
                  }),
                  mesh_error);
  CHECK_THROWS_AS(on_six([](auto& ctx) {
                    pair_tensor<space<float, grid, planned<host>>> const x(
                        ctx, extents{bind<batch>(1), bind<tokens>(13)});
                  }),
                  layout_error);
  CHECK_THROWS_AS(comm::planned_world(4, 4), argument_error);
}

TEST_CASE("some ranks alone are compared with each other only") {
  auto const program = [](comm::planned_world& world) {
    plan_context ctx(world, {1, 2, 3});
    reduce<cp1>(ctx, world.rank() == 4 ? 5 : 4);
    return world.rank();
  };
  CHECK(comm::plan_ranks(6, {0, 3, 5}, program) == std::vector<int>{0, 3, 5});
  CHECK_THROWS_AS(comm::plan_ranks(6, {3, 4}, program), collective_mismatch);
}

TEST_CASE("values that no compiler sees are refused as they are read") {
  comm::planned_world world(1, 0);
  plan_context ctx(world, {1, 1, 1});
  pair_tensor<space<float, grid, planned<host>>> const x(ctx,
                                                         extents{bind<batch>(1), bind<tokens>(4)});
  float value = 0;
  CHECK_THROWS_WITH(ctx.memory().copy_to_host(&value, x.data(), sizeof value),
                    contains("a planned tensor has no values"));
  CHECK_THROWS_AS(ctx.memory().take(std::size_t(1) << 60), memory_error);
}
