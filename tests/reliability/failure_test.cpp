// One rank throws. All ranks leave with an error within a second, and the process goes on in a
// fresh world.

#include <dtm/comm/agreement.hpp>
#include <dtm/comm/mesh_groups.hpp>

#include "comm/fresh_world.hpp"
#include "comm/test_mesh.hpp"
#include "support/catch.hpp"

namespace {

using namespace dtm::comm;
using dtm::testing::attempt;
using dtm::testing::outcome;
using dtm::testing::rank;
using dtm::testing::ranks;
using dtm::testing::settings;
using dtm::testing::test_mesh;

std::vector<int> shape() {
  return ranks() == 9 ? std::vector{3, 3} : std::vector{2, ranks() / 2};
}

/// A stretch of a program with operations of every kind; `before(k)` is called before the k-th,
/// `after(k)` between its begin and its wait.
template <class Before, class After>
int program(world& w, Before&& before, After&& after) {
  test_mesh mesh(w, {"cp0", "cp1"}, shape());
  int k = 0;
  auto const step = [&](auto&& begin) {
    before(++k);
    auto pending = begin();
    after(k);
    pending.wait();
  };
  for (unsigned mask = 1; mask < 4; ++mask) {
    auto& g = mesh.along(mask);
    std::int64_t const n = 3000;  // large enough to need several messages
    std::vector<double> in(std::size_t(n * g.size()), 1.0), out(in.size());
    std::vector<std::int64_t> const even(std::size_t(g.size()), n);
    int const right = (g.rank() + 1) % g.size(), left = (g.rank() + g.size() - 1) % g.size();
    step([&] {
      return g.all_reduce(in.data(), out.data(), n, reduction::sum, {"all_reduce", "x"});
    });
    step([&] { return g.all_gather(in.data(), out.data(), n, {"all_gather", "x"}); });
    step([&] {
      return g.reduce_scatter(in.data(), out.data(), n, reduction::sum, {"reduce_scatter", "x"});
    });
    step([&] { return g.all_to_all(in.data(), even, out.data(), even, {"all_to_all", "x"}); });
    step([&] { return g.broadcast(in.data(), n, 0, {"broadcast", "x"}); });
    step([&] { return g.shift(in.data(), out.data(), n, right, left, {"shift", "x"}); });
    step([&] { return g.barrier({"barrier"}); });
  }
  before(++k);
  agree_on(w, k);
  before(++k);
  agree(w, [] {});
  return k;
}

void nothing(int) {}

void check_everyone_left(outcome const& got, int victim, std::string const& text) {
  CAPTURE(got.text);
  if (rank() == victim) {
    CHECK(got.text == text);
  } else {
    CHECK(got.kind == failure_kind::peer);
    CHECK(got.says("rank " + std::to_string(victim) + " failed: " + text));
    CHECK(got.says("rank " + std::to_string(rank()) + " stopped in "));
  }
  CHECK(got.seconds < 1);
}

}  // namespace

TEST_CASE(
    "an exception at the k-th operation, for every k, is an error on all ranks, and the next world "
    "works") {
  auto const level = ranks() == 9 ? check_level::signatures : check_level::cheap;
  int steps = 0;
  CHECK(attempt(settings(level), [&](world& w) { steps = program(w, nothing, nothing); }).text ==
        "");
  REQUIRE(steps == 23);
  for (bool under_way : {false, true})
    for (int k = 1; k <= steps; ++k) {
      int const victim = k % ranks();
      CAPTURE(k, victim, under_way);
      auto const planted = [&](bool here) {
        return [&, here](int step) {
          if (here && step == k && rank() == victim)
            throw dtm::file_error("planted at " + std::to_string(k));
        };
      };
      if (under_way && k > steps - 2) break;  // agreements do not split into begin and wait
      auto const got = attempt(
          settings(level), [&](world& w) { program(w, planted(!under_way), planted(under_way)); });
      check_everyone_left(got, victim, "planted at " + std::to_string(k));
      if (rank() == victim) CHECK(got.kind == failure_kind::file);
      if (k % 5 == 0)
        CHECK(attempt(settings(level), [&](world& w) { program(w, nothing, nothing); }).text == "");
    }
}

TEST_CASE("an exception after the last operation is everyone's error too") {
  for (int victim : {0, ranks() - 1}) {
    auto const got = attempt(settings(check_level::cheap), [&](world& w) {
      w.meet({"meeting"});
      dtm::testing::world().meet({"all have met"});
      if (w.rank() == victim) throw std::runtime_error("too late");
    });
    check_everyone_left(got, victim, "too late");
    if (rank() != victim) CHECK(got.says("stopped in end of run"));
  }
}

TEST_CASE("something that is no std::exception travels as well") {
  auto const got = attempt(settings(check_level::cheap), [&](world& w) {
    if (w.rank() == 1) throw 42;
    w.meet({"meeting"});
  });
  CHECK(got.says("an exception that is no std::exception"));
}

TEST_CASE("of several failures each rank reports one, and nobody waits") {
  auto const got = attempt(settings(check_level::cheap), [&](world& w) {
    if (w.rank() < 2) throw std::runtime_error("fault of " + std::to_string(w.rank()));
    w.meet({"meeting"});
  });
  CHECK(got.says("fault of "));
  CHECK(got.seconds < 1);
}

TEST_CASE("a guard declares the failure of a region that is left by an exception, and only that") {
  auto& root = dtm::testing::world();
  world fresh(root, settings(check_level::cheap));
  { guard region(fresh); }
  fresh.meet({"meeting"});
  root.meet({"all have met"});
  CHECK(!fresh.has_failed());
  if (fresh.rank() == 0) {
    CHECK_THROWS_AS(
        [&] {
          guard region(fresh);
          throw std::runtime_error("planted");
        }(),
        std::runtime_error);
  } else {
    CHECK_THROWS_WITH(
        fresh.meet({"meeting"}),
        dtm::testing::contains("rank 0 failed: an exception left the guarded region of") &&
            dtm::testing::contains("failure_test.cpp:"));
  }
  CHECK(fresh.has_failed());
}

TEST_CASE("a spent world refuses everything, and says why") {
  auto& root = dtm::testing::world();
  world fresh(root, settings(check_level::cheap));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  root.meet({"all have a mesh"});
  if (fresh.rank() == 0) fresh.declare_failure("enough");
  if (fresh.rank() == 0) fresh.declare_failure("not heard any more");
  double x = 0;
  auto const expected = dtm::testing::contains(
      fresh.rank() == 0 ? "this rank (0) has failed: enough" : "rank 0 failed: enough");
  CHECK_THROWS_WITH(mesh.along(1).all_reduce(&x, &x, 1, reduction::sum, {"all_reduce"}).wait(),
                    expected);
  CHECK_THROWS_WITH(fresh.meet({"meeting"}), expected);
  CHECK_THROWS_AS(fresh.throw_if_peer_failed(), dtm::peer_failed);
  CHECK_THROWS_AS(agree_on(fresh, 1), dtm::peer_failed);
  CHECK_THROWS_AS(test_mesh(fresh, {"cp0"}, {fresh.size()}), dtm::peer_failed);
  try {
    fresh.meet({"meeting"});
  } catch (dtm::peer_failed const& e) {
    CHECK(e.rank() == 0);
  }
}

TEST_CASE("long computations can look for a peer's failure themselves") {
  auto const got = attempt(settings(check_level::cheap), [&](world& w) {
    if (w.rank() == 0) throw std::runtime_error("planted");
    for (auto const start = clock::now(); seconds_since(start) < 5;) w.throw_if_peer_failed();
  });
  CHECK(got.says("planted"));
  CHECK(got.seconds < 1);
}

TEST_CASE("a notice of any length is cut, not overrun") {
  auto const got = attempt(settings(check_level::cheap), [&](world& w) {
    if (w.rank() == 0) throw std::runtime_error(std::string(100'000, 'x'));
    w.meet({"meeting"});
  });
  CHECK(got.says(std::string(4000, 'x')));
}

TEST_CASE("a failure in the setup of a mesh on one rank ends the others at once") {
  auto const got = attempt(settings(check_level::cheap), [&](world& w) {
    if (w.rank() == ranks() - 1) throw std::bad_alloc();
    test_mesh mesh(w, {"cp0"}, {w.size()});
  });
  CHECK(got.says("bad_alloc"));
  CHECK(got.seconds < 1);
}
