// Ranks that read each other's memory: who does, the same bits as by messages, every order of waits,
// and what happens when one of them leaves, says the wrong thing or names the wrong place.

#include <dirent.h>

#include <cstring>
#include <random>

#include "dtm/core/space.hpp"
#include "dtm/host.hpp"
#include "fresh_world.hpp"
#include "support/catch.hpp"

using namespace dtm;
using namespace dtm::comm;
using dtm::testing::attempt;
using dtm::testing::contains;
using dtm::testing::settings;

namespace {

using grid = mesh<dp, cp0, cp1>;
using context_type = context<host, grid>;

context_type::options by(transport how, int ranks_per_node = 0) {
  context_type::options options;
  options.transport = how;
  options.ranks_per_node = ranks_per_node;
  return options;
}

std::vector<int> line(world const& ranks) {
  return {1, 1, ranks.size()};
}

/// Values whose sums depend on the order.
template <class T>
std::vector<T> noise(int rank, std::int64_t count) {
  std::mt19937 random(std::uint32_t(rank * 1000 + 7));
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(T(std::ldexp(double(random()) - 2e9, int(random() % 60))));
  return values;
}

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<T> sums(group& g, std::int64_t count, bool scattered) {
  auto const in = noise<T>(g.rank(), scattered ? count * g.size() : count);
  std::vector<T> out(static_cast<std::size_t>(count));
  if (scattered)
    g.reduce_scatter(in.data(), out.data(), count, reduction::sum, {"reduce_scatter"}).wait();
  else
    g.all_reduce(in.data(), out.data(), count, reduction::sum, {"all_reduce"}).wait();
  return out;
}

int open_descriptors() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

}  // namespace

TEST_CASE("sums have the same bits by messages and by shared memory") {
  auto& w = testing::world();
  context_type shared(w, line(w), 0, by(transport::shared_memory));
  context_type messages(w, line(w), 0, by(transport::messages));
  CHECK(shared.along_all().shares_memory() == (w.size() > 1));
  CHECK(!messages.along_all().shares_memory());
  for (std::int64_t count : {1, 2, 5, 1000, 4097, 60001})
    for (bool scattered : {false, true}) {
      CAPTURE(count, scattered);
      CHECK(same_bits(sums<float>(shared.along_all(), count, scattered),
                      sums<float>(messages.along_all(), count, scattered)));
      CHECK(same_bits(sums<double>(shared.along_all(), count, scattered),
                      sums<double>(messages.along_all(), count, scattered)));
    }
  CHECK(shared.ledger().entries.size() == messages.ledger().entries.size());
  CHECK(shared.ledger().sent_bytes() == messages.ledger().sent_bytes());
}

TEST_CASE("what a rank lent is read before it changes: many operations without a pause") {
  auto& w = testing::world();
  context_type ctx(w, line(w), 0, by(transport::shared_memory));
  auto& g = ctx.along_all();
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    std::int64_t const count = i % 2 == 0 ? 1 : 700;
    std::vector<double> const in(std::size_t(count * w.size()), double(i * (w.rank() + 1)));
    std::vector<double> sum(in.size()), part(in.size());
    g.all_reduce(in.data(), sum.data(), count, reduction::sum, {"all_reduce"}).wait();
    g.reduce_scatter(in.data(), part.data(), count, reduction::sum, {"reduce_scatter"}).wait();
    double const expected = double(i) * w.size() * (w.size() + 1) / 2;
    wrong += sum[std::size_t(count - 1)] != expected || part[std::size_t(count - 1)] != expected;
  }
  CHECK(wrong == 0);
}

TEST_CASE("each group takes what it can: two nodes of two ranks") {
  auto& w = testing::world();
  if (w.size() != 4) return;
  context_type ctx(w, {1, 2, 2}, 0, by(transport::by_topology, 2));
  CHECK(ctx.along<cp1>().shares_memory());
  CHECK(!ctx.along<cp0>().shares_memory());
  CHECK(!ctx.along_all().shares_memory());
  for (int i = 0; i < 3; ++i) {
    CHECK(sums<float>(ctx.along<cp1>(), 1000, false).size() == 1000);
    CHECK(sums<float>(ctx.along<cp0>(), 1000, false).size() == 1000);
    CHECK(sums<float>(ctx.along_all(), 1000, true).size() == 1000);
  }
}

TEST_CASE("shared memory that cannot be had, and wishes that differ, are everyone's error") {
  auto& w = testing::world();
  if (w.size() == 1) return;
  CHECK_THROWS_WITH(
      context_type(w, line(w), 0, by(transport::shared_memory, 1)),
      contains("options.transport is shared_memory, but ranks 0 and 1 are on different nodes"));
  auto const mine = w.rank() == w.size() - 1 ? transport::messages : transport::by_topology;
  CHECK_THROWS_WITH(context_type(w, line(w), 0, by(mine)),
                    contains("the ranks want different transports: rank 0 by_topology"));
  context_type ctx(w, line(w), 0, by(transport::by_topology, 1));  // the world has not failed
  CHECK(!ctx.along_all().shares_memory());
}

TEST_CASE("ranks may wait in different orders, and for other things between") {
  auto& w = testing::world();
  context_type ctx(w, line(w), 0, by(transport::shared_memory));
  auto& g = ctx.along_all();
  auto const something_else = [&w] { agree(w, [] {}); };
  auto const in = noise<double>(w.rank(), 5000);
  std::vector<double> sum(5000), gathered(std::size_t(5000 * w.size())), again(5000);
  for (int i = 0; i < 20; ++i) {
    auto a = g.all_reduce(in.data(), sum.data(), 5000, reduction::sum, {"all_reduce"});
    auto b = g.all_gather(in.data(), gathered.data(), 5000, {"all_gather"});
    auto c = g.all_reduce(in.data(), again.data(), 5000, reduction::sum, {"all_reduce"});
    if (w.rank() % 2 == 0) {
      a.wait();
      something_else();
      b.wait(), c.wait();
    } else {
      something_else();
      c.wait(), b.wait(), a.wait();
    }
    CHECK(same_bits(sum, again));
    CHECK(same_bits(std::vector<double>(gathered.begin() + 5000 * w.rank(),
                                        gathered.begin() + 5000 * (w.rank() + 1)),
                    in));
  }
}

TEST_CASE("contexts leave no descriptors and no mappings") {
  auto& w = testing::world();
  auto const once = [&] {
    context_type ctx(w, line(w), 0, by(transport::shared_memory));
    sums<float>(ctx.along_all(), 60001, false);
  };
  once();
  int const before = open_descriptors();
  for (int i = 0; i < 10; ++i) once();
  CHECK(open_descriptors() == before);
}

TEST_CASE("more operations may be under way than there are control words") {
  auto& w = testing::world();
  context_type ctx(w, line(w), 0, by(transport::shared_memory));
  std::size_t const many = 5 * shared_channel::depth / 2, each = std::size_t(10 * w.size());
  std::vector<double> out(each * many);
  std::vector<pending> begun;
  for (std::size_t i = 0; i < many; ++i) {
    auto const in = noise<double>(w.rank() + int(i), 10);
    begun.push_back(
        ctx.along_all().all_gather(in.data(), out.data() + i * each, 10, {"all_gather"}));
  }
  for (auto& one : begun) one.wait();
  for (std::size_t i = 0; i < many; ++i) {
    auto const last = noise<double>(w.size() - 1 + int(i), 10);
    CHECK(std::memcmp(out.data() + (i + 1) * each - 10, last.data(), 80) == 0);
  }
}

TEST_CASE("a rank that posts another step is waited for until the deadline") {
  if (testing::ranks() == 1) return;
  auto const got = attempt(settings(check_level::cheap, 1), [&](world& w) {
    auto const place = std::make_shared<node>(w, transport::shared_memory, 0, call_site::current());
    mesh_groups mesh(w, {"cp0"}, {w.size()});
    std::vector<double> own(8, double(w.rank()));
    place->locate = [](void const*) { return segment_place{}; };
    auto const planted =
        std::make_shared<shared_channel>(place, mesh.along(1).members(), w.rank(), 1);
    if (w.rank() == 0) (void)planted->next(0);
    mesh.along(1).share(planted);
    std::vector<double> out(8);
    mesh.along(1).broadcast(out.data(), 0, 0, {"broadcast"}).wait();
  });
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::deadline);
  CHECK(got.says("broadcast #"));
  CHECK(got.seconds < 2);
}

TEST_CASE("a wrong offset is seen") {
  auto& w = testing::world();
  if (w.size() == 1) return;
  arena lent(1 << 20, 0, true);
  memory storage;
  storage.owner = &lent;
  storage.allocate = [](void* self, std::size_t n) {
    return static_cast<arena*>(self)->allocate(n);
  };
  storage.release = [](void* self, void* p, std::size_t) noexcept {
    static_cast<arena*>(self)->release(p);
  };
  for (std::uint64_t wrong : {0u, 8u}) {
    auto const place = std::make_shared<node>(w, transport::shared_memory, 0, call_site::current());
    place->locate = [&](void const* p) {
      auto at = lent.place_of(p);
      at.offset += wrong;
      return at;
    };
    mesh_groups mesh(w, {"cp0"}, {w.size()});
    mesh.take_buffers_from(storage);
    mesh.share(place);
    auto const in = noise<double>(w.rank(), 100);
    std::vector<double> out(std::size_t(100 * w.size()));
    mesh.along(1).all_gather(in.data(), out.data(), 100, {"all_gather"}).wait();
    int const peer = (w.rank() + 1) % w.size();
    auto const theirs = noise<double>(peer, 100);
    CHECK((std::memcmp(out.data() + 100 * peer, theirs.data(), 800) == 0) == (wrong == 0));
  }
}

TEST_CASE("a rank that leaves between begin and wait takes nobody along but by its notice") {
  int const victim = testing::ranks() - 1;
  if (victim == 0) return;
  auto const got = attempt(settings(check_level::cheap), [&](world& w) {
    context_type ctx(w, {1, 1, w.size()}, 0, by(transport::shared_memory));
    using pair = pair_tensor<space<float, grid>, c<8>>;
    pair x(ctx, extents{bind<batch>(1), bind<tokens>(12 * w.size())});
    ctx.memory().fill_bytes(x.data(), 0, std::size_t(x.bytes()));
    for (int i = 0; i < 10; ++i) {
      auto begun = begin<all_to_all<move<cp1, 1>>>(ctx, x, "x");
      if (i == 7 && w.rank() == victim) throw file_error("planted");
      (void)begun.wait();
    }
  });
  CAPTURE(got.text);
  CHECK(got.kind == (testing::rank() == victim ? failure_kind::file : failure_kind::peer));
  CHECK(got.says("planted"));
  CHECK(got.seconds < 2);
}
