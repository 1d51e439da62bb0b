// Five ways to wait for ever. Each ends on all ranks within the deadline and one second, naming who
// is absent or that nobody is, what everyone waits in, and where it was called from. Checks are off
// here: nothing else would notice.

#include <dtm/comm/mesh_groups.hpp>

#include <functional>
#include <optional>
#include <thread>

#include "comm/fresh_world.hpp"
#include "comm/test_mesh.hpp"
#include "support/catch.hpp"

namespace {

using namespace dtm::comm;
using dtm::testing::attempt;
using dtm::testing::outcome;
using dtm::testing::ranks;
using dtm::testing::settings;
using dtm::testing::test_mesh;

constexpr double deadline = 2;

void sum(group& g, char const* tensor = "x") {
  double const in = 1;
  double out = 0;
  g.all_reduce(&in, &out, 1, reduction::sum, {"all_reduce", tensor}).wait();
}

void check_deadline(outcome const& got) {
  CHECK(got.kind == failure_kind::deadline);
  CHECK(got.says("deadline of 2 s exceeded in "));
  CHECK(got.says("deadline_test.cpp:"));
  CHECK(got.seconds < deadline + 1);
}
void check_nobody_absent(outcome const& got) {
  CAPTURE(got.text);
  check_deadline(got);
  CHECK(got.says("nobody is absent"));
  for (int r = 0; r < ranks(); ++r) CHECK(got.says("rank " + std::to_string(r) + " waits in "));
}

void sleep(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace

TEST_CASE("hang 1: one rank skips an operation and goes on") {
  int const victim = ranks() % 3 == 0 ? 0 : ranks() - 1;
  auto const got = attempt(settings(check_level::cheap, deadline), [&](world& w) {
    test_mesh mesh(w, {"cp0"}, {w.size()});
    auto& g = mesh.along(1);
    sum(g);
    if (w.rank() != victim) g.barrier({"barrier"}).wait();
    double x = 0;  // a shift cannot be taken for a barrier
    g.shift(&x, &x, 1, (g.rank() + 1) % g.size(), (g.rank() + g.size() - 1) % g.size(), {"shift"})
        .wait();
  });
  check_nobody_absent(got);
  auto const number = [](int n) { return std::to_string(test_mesh::operations() + n); };
  CHECK((got.says("barrier #" + number(2)) && got.says("shift #" + number(2))));
  CHECK(got.says("completed before: all_reduce #" + number(1)));
}

TEST_CASE("hang 2: one rank calls two operations in the other order") {
  int const victim = ranks() - 1;
  auto const got = attempt(settings(check_level::cheap, deadline), [&](world& w) {
    test_mesh mesh(w, {"cp0"}, {w.size()});
    auto& g = mesh.along(1);
    auto const shift = [&] {
      double x = 0;
      g.shift(&x, &x, 1, (g.rank() + 1) % g.size(), (g.rank() + g.size() - 1) % g.size(), {"shift"})
          .wait();
    };
    if (w.rank() == victim)
      g.barrier({"barrier"}).wait(), shift();
    else
      shift(), g.barrier({"barrier"}).wait();
  });
  check_nobody_absent(got);
}

TEST_CASE("hang 3: one rank sleeps outside the library, in every kind of wait") {
  int const victim = ranks() - 1;
  using operation = std::function<void(group&)>;
  std::vector<double> in(100), out(100);
  std::vector<std::int64_t> const ones(std::size_t(ranks()), 1);
  auto const left = [](group& g) { return (g.rank() + g.size() - 1) % g.size(); };
  auto const right = [](group& g) { return (g.rank() + 1) % g.size(); };
  // two kinds per rank count keep the test short; together the rank counts cover all
  std::vector<std::pair<std::string, operation>> const kinds{
      {"all_reduce",
       [&](group& g) {
         g.all_reduce(in.data(), out.data(), 3, reduction::sum, {"all_reduce"}).wait();
       }},
      {"all_gather",
       [&](group& g) { g.all_gather(in.data(), out.data(), 3, {"all_gather"}).wait(); }},
      {"reduce_scatter",
       [&](group& g) {
         g.reduce_scatter(in.data(), out.data(), 3, reduction::sum, {"reduce_scatter"}).wait();
       }},
      {"all_to_all",
       [&](group& g) { g.all_to_all(in.data(), ones, out.data(), ones, {"all_to_all"}).wait(); }},
      {"broadcast",
       [&](group& g) { g.broadcast(in.data(), 3, g.size() - 1, {"broadcast"}).wait(); }},
      {"shift",
       [&](group& g) { g.shift(in.data(), out.data(), 3, right(g), left(g), {"shift"}).wait(); }},
      {"barrier", [&](group& g) { g.barrier({"barrier"}).wait(); }},
      {"mesh", [](group&) {}}};
  std::size_t const first = ranks() == 2 ? 0 : ranks() == 3 ? 2 : ranks() == 4 ? 4 : 6;
  for (std::size_t kind = first; kind < first + 2; ++kind) {
    auto const& name = kinds[kind].first;  // no structured binding: clang 14 cannot capture one
    auto const& begin = kinds[kind].second;
    auto const got = attempt(settings(check_level::cheap, deadline), [&](world& w) {
      std::optional<test_mesh> mesh;
      if (name != "mesh")
        mesh.emplace(w, std::vector<std::string>{"cp0"}, std::vector<int>{w.size()});
      if (w.rank() == victim) sleep(deadline + 1.2);
      if (!mesh) mesh.emplace(w, std::vector<std::string>{"cp0"}, std::vector<int>{w.size()});
      begin(mesh->along(1));
    });
    CAPTURE(name, got.text);
    CHECK(got.kind == failure_kind::deadline);
    CHECK(got.says("absent: rank " + std::to_string(victim) + " (no sign of life"));
    CHECK(got.says(name + " #"));
    CHECK(got.seconds < deadline + (dtm::testing::rank() == victim ? 1.7 : 1));
  }
}

TEST_CASE("hang 4: one rank receives what nobody sends") {
  int const victim = ranks() % 3 == 0 ? ranks() - 1 : 0;
  auto const got = attempt(settings(check_level::cheap, deadline), [&](world& w) {
    test_mesh mesh(w, {"cp0"}, {w.size()});
    auto& g = mesh.along(1);
    int to = (g.rank() + 1) % g.size(), from = (g.rank() + g.size() - 1) % g.size();
    if (w.rank() == victim) to = from = w.rank();  // keeps its block: its neighbour waits for it
    std::vector<double> in(200'000, 1.0), out(200'000);
    g.shift(in.data(), out.data(), 200'000, to, from, {"shift", "ring"}).wait();
  });
  check_nobody_absent(got);
  CHECK((got.says("of \"ring\"") && got.says("end of run")));
}

TEST_CASE("hang 5: two communicators are used in the other order") {
  int const n = ranks();
  auto const side = n == 4 ? 2 : 3;
  if (n == 4 || n == 9) {
    auto const got = attempt(settings(check_level::cheap, deadline), [&](world& w) {
      test_mesh mesh(w, {"cp0", "cp1"}, {side, side});
      bool const crossed = mesh.coordinate(0) == mesh.coordinate(1);  // a cycle of waits
      sum(mesh.along(crossed ? 2 : 1), crossed ? "columns first" : "rows first");
      sum(mesh.along(crossed ? 1 : 2), "second");
    });
    check_nobody_absent(got);
    CHECK((got.says("columns first") && got.says("rows first")));
  } else {  // two worlds: in each, those who wait in the other are absent
    world a(dtm::testing::world(), settings(check_level::cheap, deadline));
    auto const got = attempt(settings(check_level::cheap, deadline), [&](world& b) {
      auto& first = b.rank() == 0 ? a : b;
      auto& second = b.rank() == 0 ? b : a;
      first.meet({"first meeting"});
      second.meet({"second meeting"});
    });
    CAPTURE(got.text);
    check_deadline(got);
    CHECK(got.says("absent: rank"));
    CHECK(got.says("first meeting"));
  }
}

TEST_CASE("only some ranks make a mesh") {
  int const victim = 0;
  auto const got = attempt(settings(check_level::signatures, deadline), [&](world& w) {
    if (w.rank() != victim)
      test_mesh mesh(w, {"cp0"}, {w.size()});
    else
      sleep(deadline + 1.2);
  });
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::deadline);
  CHECK(got.says("absent: rank 0"));
  CHECK(got.says("in mesh #1 on world"));
}

TEST_CASE("a deadline of zero waits as long as it takes") {
  auto const got = attempt(settings(check_level::signatures, 0), [&](world& w) {
    if (w.rank() == 0) sleep(0.5);
    w.meet({"meeting"});
  });
  CHECK(got.text == "");
}
