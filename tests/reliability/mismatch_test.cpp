// One rank calls something else: every kind of difference, in every operation, on rank 0 and on the
// last rank. At check level 2 each ends as collective_mismatch on all ranks, with a table that says
// who called what.

#include <dtm/comm/mesh_groups.hpp>

#include <cmath>
#include <functional>

#include "comm/fresh_world.hpp"
#include "comm/test_mesh.hpp"
#include "support/catch.hpp"

namespace {

using namespace dtm::comm;
using dtm::testing::attempt;
using dtm::testing::outcome;
using dtm::testing::settings;
using dtm::testing::test_mesh;

/// Everything that one rank may do differently.
struct arguments {
  std::string operation = "all_reduce";
  std::int64_t count = 4;
  bool single_precision = false;
  reduction how = reduction::sum;
  int root = 0;
  char const* tensor = "dz";
  std::uint64_t layout = 11;
  call_site where{"module.hpp", 10};
};

template <class T>
void run_one(group& g, arguments const& a) {
  std::vector<T> in(std::size_t(64 * g.size()), T(g.rank() + 1)), out(in.size());
  std::vector<std::int64_t> const counts(std::size_t(g.size()), a.count);
  call const who{a.operation.c_str(), a.tensor, a.layout, a.where};
  int const right = (g.rank() + 1) % g.size(), left = (g.rank() + g.size() - 1) % g.size();
  if (a.operation == "all_reduce") g.all_reduce(in.data(), out.data(), a.count, a.how, who).wait();
  if (a.operation == "all_gather") g.all_gather(in.data(), out.data(), a.count, who).wait();
  if (a.operation == "reduce_scatter")
    g.reduce_scatter(in.data(), out.data(), a.count, a.how, who).wait();
  if (a.operation == "all_to_all") g.all_to_all(in.data(), counts, out.data(), counts, who).wait();
  if (a.operation == "broadcast") g.broadcast(in.data(), a.count, a.root, who).wait();
  if (a.operation == "shift") g.shift(in.data(), out.data(), a.count, right, left, who).wait();
  if (a.operation == "barrier") g.barrier(who).wait();
}

void run(group& g, arguments const& a) {
  a.single_precision ? run_one<float>(g, a) : run_one<double>(g, a);
}

std::vector<std::string> const operations{
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "shift", "barrier"};

struct mutation {
  std::string field;  // as the table names it
  std::function<void(arguments&)> change;
  std::string usual, odd;  // what the two lines of the table must show
};

std::vector<mutation> mutations(std::string const& operation) {
  std::string const other = operation == "all_gather" ? "all_reduce" : "all_gather";
  std::string const number = " #" + std::to_string(test_mesh::operations() + 1);
  std::vector<mutation> list{
      {"operation", [other](auto& a) { a.operation = other; }, operation + number, other + number},
      {"tensor", [](auto& a) { a.tensor = "dx"; }, "\"dz\"", "\"dx\""},
      {"layout", [](auto& a) { a.layout = 12; }, "layout 000000000000000b",
       "layout 000000000000000c"},
      {"call site", [](auto& a) { a.where.line = 20; }, "module.hpp:10", "module.hpp:20"}};
  if (operation == "barrier") return list;
  list.push_back({"element type", [](auto& a) { a.single_precision = true; }, "x fp64", "x fp32"});
  if (operation != "all_to_all")
    list.push_back({"count", [](auto& a) { a.count = 3; }, "4 x fp64", "3 x fp64"});
  if (operation == "all_reduce" || operation == "reduce_scatter")
    list.push_back({"reduction", [](auto& a) { a.how = reduction::max; }, ", sum", ", max"});
  if (operation == "broadcast")
    list.push_back({"root", [](auto& a) { a.root = 1; }, "root 0", "root 1"});
  return list;
}

void check_mismatch(outcome const& got, int victim) {
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::mismatch);
  CHECK(got.says("collective mismatch"));
  CHECK(got.says("rank " + std::to_string(victim) + ": "));
  CHECK(got.seconds < 2);
}

std::vector<int> victims() {
  return {0, dtm::testing::ranks() - 1};
}

}  // namespace

TEST_CASE("a difference in any field of any operation is everyone's error") {
  for (auto const& operation : operations)
    for (int victim : victims())
      for (auto const& m : mutations(operation)) {
        CAPTURE(operation, victim, m.field);
        auto const got = attempt(settings(check_level::signatures, 5), [&](world& w) {
          test_mesh mesh(w, {"cp0"}, {w.size()});
          arguments a;
          a.operation = operation;
          if (w.rank() == victim) m.change(a);
          run(mesh.along(1), a);
        });
        check_mismatch(got, victim);
        CHECK(got.says(m.usual));
        CHECK(got.says(m.odd));
        CHECK(got.says("differs in: " + (m.field == "operation" ? "operation" : m.field)));
      }
}

TEST_CASE("two operations in another order, or one too few, are found at the first that differs") {
  for (int victim : victims()) {
    auto const swapped = attempt(settings(check_level::signatures, 5), [&](world& w) {
      test_mesh mesh(w, {"cp0"}, {w.size()});
      arguments first, second;
      second.operation = "all_gather";
      second.where.line = 11;
      if (w.rank() == victim) std::swap(first, second);
      run(mesh.along(1), first);
      run(mesh.along(1), second);
    });
    check_mismatch(swapped, victim);
    CHECK((swapped.says("module.hpp:10") && swapped.says("module.hpp:11")));

    auto const skipped = attempt(settings(check_level::signatures, 5), [&](world& w) {
      test_mesh mesh(w, {"cp0"}, {w.size()});
      if (w.rank() != victim) run(mesh.along(1), {});
    });
    check_mismatch(skipped, victim);
    CHECK((skipped.says("all_reduce") && skipped.says("end of run")));
  }
}

TEST_CASE("blocks of an all_to_all that do not fit are named pair by pair") {
  int const n = dtm::testing::ranks();
  for (int victim : victims()) {
    int const peer = (victim + 1) % n;
    auto const got = attempt(settings(check_level::signatures, 5), [&](world& w) {
      test_mesh mesh(w, {"cp0"}, {n});
      std::vector<std::int64_t> send(std::size_t(n), 2), receive(std::size_t(n), 2);
      if (w.rank() == victim) send[std::size_t(peer)] = 3;
      std::vector<float> in(std::size_t(3 * n)), out(std::size_t(3 * n));
      mesh.along(1).all_to_all(in.data(), send, out.data(), receive, {"all_to_all", "x"}).wait();
    });
    CAPTURE(got.text);
    CHECK(got.kind == failure_kind::mismatch);
    CHECK(got.says("rank " + std::to_string(victim) + " sends 3 elements to rank " +
                   std::to_string(peer) + ", which expects 2"));
  }
}

TEST_CASE("partners of a shift that do not fit are named") {
  int const n = dtm::testing::ranks();
  if (n < 3) return;
  for (int victim : victims()) {
    auto const got = attempt(settings(check_level::signatures, 5), [&](world& w) {
      test_mesh mesh(w, {"cp0"}, {n});
      int right = (w.rank() + 1) % n, left = (w.rank() + n - 1) % n;
      if (w.rank() == victim) std::swap(left, right);
      float const in = 1;
      float out = 0;
      mesh.along(1).shift(&in, &out, 1, right, left, {"shift", "x"}).wait();
    });
    CAPTURE(got.text);
    CHECK(got.kind == failure_kind::mismatch);
    CHECK(got.says("rank " + std::to_string(victim) + " sends to rank"));
  }
}

TEST_CASE("a mismatch inside one group reaches the ranks of all groups") {
  int const n = dtm::testing::ranks();
  if (n != 4 && n != 9) return;
  int const side = n == 4 ? 2 : 3;
  for (int victim : victims()) {
    auto const got = attempt(settings(check_level::signatures, 5), [&](world& w) {
      test_mesh mesh(w, {"cp0", "cp1"}, {side, side});
      arguments a;
      if (w.rank() == victim) a.how = reduction::max;
      run(mesh.along(2), a);
    });
    check_mismatch(got, victim);
    CHECK(got.says("on cp1"));
  }
}

TEST_CASE("an operation along the wrong mesh axis ends with both call sites") {
  int const n = dtm::testing::ranks();
  if (n != 4 && n != 9) return;
  int const side = n == 4 ? 2 : 3;
  for (int victim : victims()) {
    auto const got = attempt(settings(check_level::signatures, 2), [&](world& w) {
      test_mesh mesh(w, {"cp0", "cp1"}, {side, side});
      arguments a;
      a.where.line = w.rank() == victim ? 20 : 10;
      run(mesh.along(w.rank() == victim ? 2 : 1), a);
    });
    CAPTURE(got.text);
    CHECK(got.kind == failure_kind::deadline);
    CHECK(got.says("nobody is absent: the ranks wait for each other in different operations"));
    CHECK((got.says("on cp0 of \"dz\"") && got.says("on cp1 of \"dz\"")));
    CHECK((got.says("module.hpp:10") && got.says("module.hpp:20")));
    CHECK(got.seconds < 3);
  }
}

TEST_CASE("level 3 names the ranks whose replicas differ") {
  int const n = dtm::testing::ranks();
  if (n < 3) return;
  auto const got = attempt(settings(check_level::data, 5), [&](world& w) {
    std::vector<float> weights(1000, 0.5f);
    if (w.rank() == 1) weights[700] = std::nextafter(weights[700], 1.0f);
    call const who{"replicas", "weights"};
    w.all()->check_replicas(weights.data(), weights.size() * sizeof(float),
                            w.all()->open(who, "world", "fp32", 1000));
  });
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::replication);
  CHECK((got.says("replicas differ bit for bit: rank 1 against the others") &&
         got.says("\"weights\"")));
}

TEST_CASE("below level 2 nothing is compared, and equal calls pass at every level") {
  for (auto level :
       {check_level::none, check_level::cheap, check_level::signatures, check_level::data}) {
    auto const got = attempt(settings(level), [&](world& w) {
      test_mesh mesh(w, {"cp0"}, {w.size()});
      arguments a;
      if (level < check_level::signatures) a.where.line = 10 + unsigned(w.rank());
      for (auto const& operation : operations) {
        a.operation = operation;
        run(mesh.along(1), a);
      }
    });
    CHECK(got.text == "");
  }
}
