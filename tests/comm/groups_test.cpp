// Every operation on every group of every mesh, with whole numbers compared bit for bit, at every
// check level.

#include <dtm/comm/communicator.hpp>
#include <dtm/comm/mesh_groups.hpp>

#include <cmath>
#include <cstring>
#include <numeric>

#include "fresh_world.hpp"
#include "support/catch.hpp"
#include "test_mesh.hpp"

namespace {

using namespace dtm::comm;
using dtm::testing::settings;
using dtm::testing::test_mesh;

static_assert(communicator<group>);
static_assert(communicator<group, std::int64_t>);

struct two_bytes {
  unsigned char low = 0, high = 0;
  two_bytes() = default;
  explicit two_bytes(std::int64_t v)
      : low(static_cast<unsigned char>(v)), high(static_cast<unsigned char>(v >> 8)) {}
};

/// Small and whole, so that sums over nine ranks are exact in every type; negative where the type
/// can be.
template <class T>
T value(int rank, std::int64_t i) {
  std::int64_t const v = (rank * 7 + i * 3 + rank * i) % 13;
  if constexpr (std::is_signed_v<T>)
    return T(v - 6);
  else
    return T(v);
}

template <class T>
bool same(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T>
std::vector<T> values(int rank, std::int64_t count, std::int64_t first = 0) {
  std::vector<T> v;
  for (std::int64_t i = 0; i < count; ++i) v.push_back(value<T>(rank, first + i));
  return v;
}

template <class T>
T combine(reduction how, T a, T b) {
  return how == reduction::sum ? T(a + b) : how == reduction::max ? std::max(a, b) : std::min(a, b);
}

/// The reduction over the members of the elements [first, first + count).
template <class T>
std::vector<T> reduced(group& g, reduction how, std::int64_t count, std::int64_t first = 0) {
  auto result = values<T>(g.members()[0], count, first);
  for (int r = 1; r < g.size(); ++r)
    for (std::int64_t i = 0; i < count; ++i)
      result[std::size_t(i)] =
          combine(how, result[std::size_t(i)], value<T>(g.members()[std::size_t(r)], first + i));
  return result;
}

template <class T>
void check_reductions(group& g, std::int64_t count) {
  int const me = g.members()[std::size_t(g.rank())];
  for (auto how : {reduction::sum, reduction::max, reduction::min}) {
    std::vector<T> out(static_cast<std::size_t>(count));
    auto const in = values<T>(me, count);
    g.all_reduce(in.data(), out.data(), count, how, {"all_reduce", "x"}).wait();
    CHECK(same(out, reduced<T>(g, how, count)));
    CHECK(same(in, values<T>(me, count)));

    auto in_place = in;
    g.all_reduce(in_place.data(), in_place.data(), count, how, {"all_reduce", "x"}).wait();
    CHECK(same(in_place, out));

    auto const blocks = values<T>(me, count * g.size());
    g.reduce_scatter(blocks.data(), out.data(), count, how, {"reduce_scatter", "x"}).wait();
    CHECK(same(out, reduced<T>(g, how, count, count * g.rank())));
  }
}

template <class T>
void check_movement(group& g, std::int64_t count) {
  int const me = g.members()[std::size_t(g.rank())];
  auto const world_rank = [&g](int r) { return g.members()[std::size_t(r)]; };
  auto const size = g.size(), rank = g.rank();
  auto const in = values<T>(me, count);

  std::vector<T> gathered(static_cast<std::size_t>(count * size)), all;
  for (int r = 0; r < size; ++r) {
    auto const part = values<T>(world_rank(r), count);
    all.insert(all.end(), part.begin(), part.end());
  }
  g.all_gather(in.data(), gathered.data(), count, {"all_gather", "x"}).wait();
  CHECK(same(gathered, all));

  for (int root = 0; root < size; ++root) {
    auto data = in;
    g.broadcast(data.data(), count, root, {"broadcast", "x"}).wait();
    CHECK(same(data, values<T>(world_rank(root), count)));
  }

  for (int distance : {1, 2}) {
    int const to = (rank + distance) % size, from = (rank + size * 2 - distance) % size;
    std::vector<T> out(static_cast<std::size_t>(count));
    g.shift(in.data(), out.data(), count, to, from, {"shift", "x"}).wait();
    CHECK(same(out, values<T>(world_rank(from), count)));
  }

  // uneven: rank s sends (s + 2 r) % 3 * count elements to rank r, among them none at all
  auto const length = [count](int s, int r) { return (s + 2 * r) % 3 * count; };
  std::vector<std::int64_t> send_counts, receive_counts;
  std::vector<T> packed, expected;
  for (int r = 0; r < size; ++r) {
    send_counts.push_back(length(rank, r));
    receive_counts.push_back(length(r, rank));
    auto const outgoing = values<T>(me, length(rank, r), 100 * r);
    auto const incoming = values<T>(world_rank(r), length(r, rank), 100 * rank);
    packed.insert(packed.end(), outgoing.begin(), outgoing.end());
    expected.insert(expected.end(), incoming.begin(), incoming.end());
  }
  std::vector<T> out(expected.size());
  g.all_to_all(packed.data(), send_counts, out.data(), receive_counts, {"all_to_all", "x"}).wait();
  CHECK(same(out, expected));
  g.barrier({"barrier"}).wait();
}

template <class T>
void check_all(group& g, std::int64_t count) {
  check_movement<T>(g, count);
  if constexpr (std::is_arithmetic_v<T>) check_reductions<T>(g, count);
}

std::vector<std::vector<int>> shapes(int ranks) {
  std::vector<std::vector<int>> found{{ranks}};
  for (int a = 1; a <= ranks; ++a)
    if (ranks % a == 0 && ranks > 1) found.push_back({a, ranks / a});
  if (ranks == 8) found.push_back({2, 2, 2});
  return found;
}

test_mesh make(world& ranks, std::vector<int> const& sizes) {
  std::vector<std::string> const all{"dp", "cp0", "cp1"};
  return test_mesh(ranks, {all.end() - std::ptrdiff_t(sizes.size()), all.end()}, sizes);
}

}  // namespace

TEST_CASE("every operation on every group of every mesh gives the whole numbers it should") {
  auto const level = GENERATE(check_level::none, check_level::signatures, check_level::data);
  world fresh(dtm::testing::world(), settings(level));
  for (auto const& sizes : shapes(fresh.size())) {
    auto mesh = make(fresh, sizes);
    for (unsigned mask = 0; mask < 1u << sizes.size(); ++mask) {
      auto& g = mesh.along(mask);
      CAPTURE(g.name(), g.size(), int(level));
      check_all<double>(g, 5);
      check_all<float>(g, 3);
    }
  }
}

TEST_CASE("every element type, and counts of none, one and many") {
  world fresh(dtm::testing::world(), settings(check_level::data));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  for (std::int64_t count : {0, 1, 17}) {
    CAPTURE(count);
    check_all<std::int32_t>(g, count);
    check_all<std::int64_t>(g, count);
    check_all<std::uint8_t>(g, count);
    check_all<two_bytes>(g, count);
  }
  check_all<double>(g, 50'000);  // beyond what MPI sends eagerly
}

TEST_CASE("several operations may be under way, and end in any order") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  int const me = fresh.rank();
  auto const a = values<double>(me, 1000), b = values<double>(me + 1, 10);
  std::vector<double> sum(1000), gathered(std::size_t(10 * g.size())), shifted(10);
  auto first = g.all_reduce(a.data(), sum.data(), 1000, reduction::sum, {"all_reduce"});
  auto second = g.all_gather(b.data(), gathered.data(), 10, {"all_gather"});
  auto third = g.shift(b.data(), shifted.data(), 10, (me + 1) % g.size(),
                       (me + g.size() - 1) % g.size(), {"shift"});
  third.wait();
  second.wait();
  first.wait();
  first.wait();  // nothing is left to wait for
  CHECK(same(sum, reduced<double>(g, reduction::sum, 1000)));
  CHECK(same(shifted, values<double>((me + g.size() - 1) % g.size() + 1, 10)));
  CHECK(gathered.back() == value<double>(g.size(), 9));
}

TEST_CASE(
    "from level 2 on, a result read before its wait is NaN, and an input may change at once") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  auto in = values<float>(fresh.rank(), 100);
  std::vector<float> out(100, 1.0f);
  auto pending = g.all_reduce(in.data(), out.data(), 100, reduction::sum, {"all_reduce"});
  if (g.size() > 1) CHECK((std::isnan(out.front()) && std::isnan(out.back())));
  std::fill(in.begin(), in.end(), -1.0f);
  pending.wait();
  CHECK(same(out, reduced<float>(g, reduction::sum, 100)));
}

TEST_CASE("an operation that nobody waits for is reported and waited for") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  double const in = fresh.rank() + 1.0;
  double out = 0;
  { auto forgotten = mesh.along(1).all_reduce(&in, &out, 1, reduction::sum, {"all_reduce"}); }
  CHECK(out == fresh.size() * (fresh.size() + 1) / 2);
}

TEST_CASE("an operation that an exception passes is left alone, and the world stays usable") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  for (int i = 0; i < 20; ++i) {
    std::vector<double> out(20000);
    CHECK_THROWS_AS(
        [&] {
          std::vector<double> const in(20000, 1.0);
          auto dropped = g.all_reduce(in.data(), out.data(), 20000, reduction::sum, {"all_reduce"});
          throw dtm::argument_error("on all ranks");
        }(),
        dtm::argument_error);
    check_reductions<double>(g, 5);
  }
}

TEST_CASE("the ledger has one entry for every operation, with the elements that left this rank") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  std::int64_t const P = g.size();
  std::vector<double> in(std::size_t(6 * P)), out(std::size_t(6 * P));
  std::vector<std::int64_t> const six(std::size_t(P), 6);
  g.all_reduce(in.data(), out.data(), 6 * P, reduction::sum, {"all_reduce", "dz"}).wait();
  unsigned const line = __LINE__ - 1;
  g.all_gather(in.data(), out.data(), 6, {"all_gather", "x"}).wait();
  g.reduce_scatter(in.data(), out.data(), 6, reduction::sum, {"reduce_scatter", "x"}).wait();
  g.all_to_all(in.data(), six, out.data(), six, {"all_to_all", "x"}).wait();
  g.broadcast(in.data(), 6 * P, 0, {"broadcast", "x"}).wait();
  int const right = int((g.rank() + 1) % P), left = int((g.rank() + P - 1) % P);
  g.shift(in.data(), out.data(), 6, right, left, {"shift", "x"}).wait();
  g.shift(in.data(), out.data(), 6, g.rank(), g.rank(), {"shift", "x"}).wait();
  g.barrier({"barrier"}).wait();

  auto const& entries = mesh.ledger().entries;
  REQUIRE(entries.size() == 8);
  CHECK((entries[0].operation == "all_reduce" && entries[0].axes == "cp0" &&
         entries[0].tensor == "dz"));
  CHECK((entries[0].line == line &&
         std::string(entries[0].file).find("groups_test.cpp") != std::string::npos));
  CHECK((entries[0].count == 6 * P && entries[0].bytes_per_element == 8));
  std::vector<std::int64_t> sent, self;
  for (auto const& e : entries) sent.push_back(e.sent_elements), self.push_back(e.self_elements);
  std::int64_t const others = P - 1;
  CHECK(sent == std::vector<std::int64_t>{12 * others, 6 * others, 6 * others, 6 * others,
                                          6 * others, P > 1 ? 6 : 0, 0, 0});
  CHECK(self == std::vector<std::int64_t>{0, 0, 0, 6, 0, P > 1 ? 0 : 6, 6, 0});
  CHECK(mesh.ledger().sent_bytes() ==
        8 * std::accumulate(sent.begin(), sent.end(), std::int64_t(0)));
  CHECK(mesh.ledger().count("shift") == 2);
  mesh.ledger().clear();
  CHECK(mesh.ledger().entries.empty());
}

TEST_CASE("impossible arguments are refused before anybody waits") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  double x[4] = {};
  using dtm::argument_error;
  CHECK_THROWS_AS(g.all_reduce(x, x, -1, reduction::sum, {"all_reduce"}), argument_error);
  CHECK_THROWS_AS(g.all_gather(x, x, -3, {"all_gather"}), argument_error);
  CHECK_THROWS_AS(g.broadcast(x, 1, g.size(), {"broadcast"}), argument_error);
  CHECK_THROWS_AS(g.broadcast(x, 1, -1, {"broadcast"}), argument_error);
  CHECK_THROWS_AS(g.shift(x, x, 1, g.size(), 0, {"shift"}), argument_error);
  if (g.size() > 1)
    CHECK_THROWS_AS(g.shift(x, x, 1, g.rank(), (g.rank() + 1) % g.size(), {"shift"}),
                    argument_error);
  std::vector<std::int64_t> const few(std::size_t(g.size() - 1), 0), ones(std::size_t(g.size()), 1);
  std::vector<std::int64_t> negative(std::size_t(g.size()), 0);
  negative.back() = -1;
  CHECK_THROWS_AS(g.all_to_all(x, few, x, ones, {"all_to_all"}), argument_error);
  CHECK_THROWS_AS(g.all_to_all(x, negative, x, negative, {"all_to_all"}), argument_error);
  CHECK_THROWS_WITH(g.broadcast(x, 1, 99, {"broadcast"}),
                    dtm::testing::contains("groups_test.cpp:"));
  check_all<double>(g, 2);
}

TEST_CASE("the same bits in every run, and on all ranks") {
  world fresh(dtm::testing::world(), settings(check_level::data));
  test_mesh mesh(fresh, {"cp0"}, {fresh.size()});
  auto& g = mesh.along(1);
  for (std::int64_t count : {1, 10, 1000, 30'000}) {
    std::vector<float> in, first(static_cast<std::size_t>(count)), again = first;
    for (std::int64_t i = 0; i < count; ++i)
      in.push_back(std::sin(float(i) + 100.0f * float(fresh.rank())) * 1e3f);
    g.all_reduce(in.data(), first.data(), count, reduction::sum, {"all_reduce"}).wait();
    for (int run = 0; run < 5; ++run) {
      g.all_reduce(in.data(), again.data(), count, reduction::sum, {"all_reduce"}).wait();
      CHECK(same(first, again));
    }
  }
}
