// Who is in which group, in which order, under which name; and meshes that do not fit.

#include <dtm/comm/mesh_groups.hpp>

#include "fresh_world.hpp"
#include "support/catch.hpp"

using namespace dtm::comm;
using dtm::testing::attempt;
using dtm::testing::contains;
using dtm::testing::settings;

namespace {
std::vector<int> members_of(group& g) {
  return {g.members().begin(), g.members().end()};
}
}  // namespace

TEST_CASE("ranks are row-major over the axes, the last axis fastest") {
  auto& ranks = dtm::testing::world();
  if (ranks.size() == 8) {
    mesh_groups mesh(ranks, {"dp", "cp0", "cp1"}, {2, 2, 2});
    int const r = ranks.rank();
    CHECK((mesh.axes() == 3 && mesh.size(0) == 2 && mesh.name(2) == "cp1"));
    CHECK((mesh.coordinate(0) == r / 4 && mesh.coordinate(1) == r / 2 % 2 &&
           mesh.coordinate(2) == r % 2));
    CHECK(members_of(mesh.along(1)) == std::vector<int>{r % 4, r % 4 + 4});
    CHECK(members_of(mesh.along(4)) == std::vector<int>{r / 2 * 2, r / 2 * 2 + 1});
    int const base = r / 2 % 2 * 2;
    CHECK(members_of(mesh.along(5)) == std::vector<int>{base, base + 1, base + 4, base + 5});
    CHECK(mesh.along(5).name() == "dp*cp1");
    CHECK(mesh.along(5).rank() == r / 4 * 2 + r % 2);
    CHECK(members_of(mesh.along(7)) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  }
  if (ranks.size() == 6) {
    mesh_groups mesh(ranks, {"cp0", "cp1"}, {2, 3});
    int const r = ranks.rank();
    CHECK(members_of(mesh.along(1)) == std::vector<int>{r % 3, r % 3 + 3});
    CHECK(members_of(mesh.along(2)) == std::vector<int>{r / 3 * 3, r / 3 * 3 + 1, r / 3 * 3 + 2});
    CHECK((mesh.along(1).rank() == r / 3 && mesh.along(2).rank() == r % 3));
  }
  mesh_groups line(ranks, {"dp", "cp0", "cp1"}, {1, ranks.size(), 1});
  CHECK((line.along(2).size() == ranks.size() && line.along(2).name() == "cp0"));
  CHECK((line.along(7).size() == ranks.size() && line.along(7).name() == "dp*cp0*cp1"));
  CHECK(
      (line.along(0).size() == 1 && line.along(5).size() == 1 && line.along(5).name() == "dp*cp1"));
  CHECK_THROWS_AS(line.along(8), dtm::argument_error);
}

TEST_CASE("a mesh that does not fit the ranks is an error with a remedy, on all ranks") {
  auto& ranks = dtm::testing::world();
  auto const n = std::to_string(ranks.size()), more = std::to_string(ranks.size() + 1);
  CHECK_THROWS_WITH(
      mesh_groups(ranks, {"cp0"}, {ranks.size() + 1}),
      contains("mesh cp0=" + more + " has " + more + " places, but there are " + n + " ranks") &&
          contains("mpiexec -n " + more));
  CHECK_THROWS_AS(mesh_groups(ranks, {"cp0", "cp1"}, {0, ranks.size()}), dtm::mesh_error);
  CHECK_THROWS_AS(mesh_groups(ranks, {"cp0", "cp1"}, {ranks.size()}), dtm::mesh_error);
  CHECK_THROWS_AS(mesh_groups(ranks, {"a", "b", "c"}, {1 << 30, 1 << 30, 1 << 30}),
                  dtm::mesh_error);
  mesh_groups fits(ranks, {"cp0"}, {ranks.size()});  // the world has not failed
  CHECK(fits.along(1).size() == ranks.size());
}

TEST_CASE("ranks that want different meshes are told so, at every check level") {
  int const n = dtm::testing::ranks();
  if (n == 1) return;
  for (auto level : {check_level::none, check_level::signatures})
    for (bool in_names : {true, false}) {
      auto const got = attempt(settings(level), [&](world& w) {
        bool const odd = w.rank() == n - 1;
        if (in_names)
          mesh_groups mesh(w, {odd ? "cp1" : "cp0"}, {n});
        else
          mesh_groups mesh(w, {"cp0", "cp1"},
                           odd ? std::vector<int>{1, n} : std::vector<int>{n, 1});
      });
      CAPTURE(got.text);
      CHECK(got.kind == failure_kind::mesh);
      CHECK(got.says("the ranks want different meshes"));
      CHECK(got.says("rank " + std::to_string(n - 1) + ": " + (in_names ? "cp1=" : "cp0=1 x ")));
    }
}

TEST_CASE("two meshes over the same ranks live side by side") {
  auto& ranks = dtm::testing::world();
  mesh_groups a(ranks, {"cp0", "cp1"}, {ranks.size(), 1});
  mesh_groups b(ranks, {"cp0", "cp1"}, {1, ranks.size()});
  double const one = 1;
  double x = 0, y = 0;
  auto first = a.along(1).all_reduce(&one, &x, 1, reduction::sum, {"all_reduce"});
  auto second = b.along(2).all_reduce(&one, &y, 1, reduction::sum, {"all_reduce"});
  second.wait();
  first.wait();
  CHECK((x == ranks.size() && y == ranks.size()));
  CHECK((a.ledger().entries.size() == 1 && b.ledger().entries.size() == 1));
}
