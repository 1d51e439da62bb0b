// Every operation on every group of every mesh, by NCCL and staged by MPI: whole numbers compared
// bit for bit, at every check level.

#include <algorithm>
#include <numeric>

#include "device.hpp"

namespace {

using namespace on_device;
using dtm::bf16;
using dtm::gpu::cuda_group;
using dtm::testing::settings;

static_assert(communicator<nccl_group>);
static_assert(communicator<cuda_group>);
static_assert(communicator<cuda_group, std::int64_t>);

template <class T>
T combine(reduction how, T a, T b) {
  return how == reduction::sum ? T(a + b) : how == reduction::max ? std::max(a, b) : std::min(a, b);
}

/// The reduction over the members of the elements [first, first + count).
template <class T>
std::vector<T> reduced(cuda_group const& g, reduction how, std::int64_t count,
                       std::int64_t first = 0) {
  auto result = values<T>(g.members()[0], count, first);
  for (int r = 1; r < g.size(); ++r)
    for (std::int64_t i = 0; i < count; ++i)
      result[std::size_t(i)] =
          combine(how, result[std::size_t(i)], value<T>(g.members()[std::size_t(r)], first + i));
  return result;
}

template <class T>
void check_reductions(device& gpu, cuda_group& g, std::int64_t count) {
  int const me = g.members()[std::size_t(g.rank())];
  for (auto how : {reduction::sum, reduction::max, reduction::min}) {
    array<T> const in(gpu, values<T>(me, count)), out(gpu, std::size_t(count));
    g.all_reduce(in.data(), out.data(), count, how, {"all_reduce", "x"}).wait();
    g.all_reduce(in.data(), in.data(), count, how, {"all_reduce", "x"}).wait();
    CHECK(same(out.on_host(), reduced<T>(g, how, count)));
    CHECK(same(in.on_host(), out.on_host()));

    array<T> const blocks(gpu, values<T>(me, count * g.size()));
    g.reduce_scatter(blocks.data(), out.data(), count, how, {"reduce_scatter", "x"}).wait();
    CHECK(same(out.on_host(), reduced<T>(g, how, count, count * g.rank())));
    CHECK(same(blocks.on_host(), values<T>(me, count * g.size())));
  }
}

template <class T>
void check_movement(device& gpu, cuda_group& g, std::int64_t count) {
  auto const size = g.size(), rank = g.rank();
  auto const world_rank = [&g](int r) { return g.members()[std::size_t(r)]; };
  int const me = world_rank(rank);
  array<T> const in(gpu, values<T>(me, count));

  array<T> const gathered(gpu, std::size_t(count * size));
  std::vector<T> all;
  for (int r = 0; r < size; ++r) {
    auto const part = values<T>(world_rank(r), count);
    all.insert(all.end(), part.begin(), part.end());
  }
  g.all_gather(in.data(), gathered.data(), count, {"all_gather", "x"}).wait();
  CHECK(same(gathered.on_host(), all));

  for (int root = 0; root < size; ++root) {
    array<T> const data(gpu, values<T>(me, count));
    g.broadcast(data.data(), count, root, {"broadcast", "x"}).wait();
    CHECK(same(data.on_host(), values<T>(world_rank(root), count)));
  }

  for (int distance : {1, 2}) {
    int const to = (rank + distance) % size, from = (rank + size * 2 - distance) % size;
    array<T> const out(gpu, std::size_t(count));
    g.shift(in.data(), out.data(), count, to, from, {"shift", "x"}).wait();
    CHECK(same(out.on_host(), values<T>(world_rank(from), count)));
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
  array<T> const sent(gpu, packed), out(gpu, expected.size());
  g.all_to_all(sent.data(), send_counts, out.data(), receive_counts, {"all_to_all", "x"}).wait();
  CHECK(same(out.on_host(), expected));
  g.barrier({"barrier"}).wait();
}

template <class T>
void check_all(device& gpu, cuda_group& g, std::int64_t count) {
  check_movement<T>(gpu, g, count);
  if constexpr (std::is_arithmetic_v<T>) check_reductions<T>(gpu, g, count);
}

struct three_bytes {
  std::uint8_t red = 0, green = 0, blue = 0;
  three_bytes() = default;
  explicit three_bytes(std::int64_t v) : red(std::uint8_t(v)), blue(std::uint8_t(2 * v)) {}
};

}  // namespace

TEST_CASE("every operation on every group of a mesh gives the whole numbers it should") {
  auto const level = GENERATE(check_level::none, check_level::signatures, check_level::data);
  auto const how = GENERATE(dtm::gpu::transport::nccl, dtm::gpu::transport::staged_mpi);
  world fresh(dtm::testing::world(), settings(level));
  device gpu(fresh, {"cp0", "cp1"}, square(), how);
  auto const blocking = blocking_calls();
  for (unsigned mask = 0; mask < 4; ++mask) {
    auto& g = gpu.along(mask);
    CAPTURE(int(level), int(how), mask);
    check_all<float>(gpu, g, 5);
    check_all<bf16>(gpu, g, 3);
    check_all<double>(gpu, g, 0);
    if (mask != 3) continue;
    check_all<double>(gpu, g, 300);
    check_all<std::int32_t>(gpu, g, 7);
    check_all<std::int64_t>(gpu, g, 2);
    check_all<std::uint8_t>(gpu, g, 5);
    check_all<three_bytes>(gpu, g, 5);
  }
  CHECK(blocking_calls() == blocking);
  stand_in::check_guards();
}

TEST_CASE("the ledger has the entries of a group of hosts") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  device gpu(fresh, {"cp0", "cp1"}, square());
  auto const run = [](auto& g, double* in, double* out) {
    std::int64_t const P = g.size();
    std::vector<std::int64_t> const six(std::size_t(P), 6);
    int const right = int((g.rank() + 1) % P), left = int((g.rank() + P - 1) % P);
    g.all_reduce(in, out, 6 * P + 1, reduction::sum, {"all_reduce", "dz"}).wait();
    g.all_gather(in, out, 6, {"all_gather", "x"}).wait();
    g.reduce_scatter(in, out, 6, reduction::sum, {"reduce_scatter", "x"}).wait();
    g.all_to_all(in, six, out, six, {"all_to_all", "x"}).wait();
    g.broadcast(in, 6 * P + 1, 0, {"broadcast", "x"}).wait();
    g.shift(in, out, 6, right, left, {"shift", "x"}).wait();
    g.shift(in, out, 6, g.rank(), g.rank(), {"shift", "x"}).wait();
    g.barrier({"barrier"}).wait();
  };
  std::vector<double> in(100), out(100);
  array<double> const device_in(gpu, in), device_out(gpu, out.size());
  for (unsigned mask = 0; mask < 4; ++mask) {
    gpu.mesh.ledger().clear();
    run(gpu.mesh.along(mask), in.data(), out.data());
    auto const expected = std::exchange(gpu.mesh.ledger().entries, {});
    run(gpu.along(mask), device_in.data(), device_out.data());
    REQUIRE(expected.size() == 8);
    CHECK(gpu.mesh.ledger().entries == expected);
  }
  gpu.finish();
}

TEST_CASE("impossible arguments are refused before anybody waits") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto& g = gpu.along(1);
  array<double> const memory(gpu, std::size_t(100));
  double* const x = memory.data();
  double* const y = x + 50;
  using dtm::argument_error;
  auto const size = std::size_t(g.size());
  CHECK_THROWS_AS(g.all_reduce(x, x, -1, reduction::sum, {"all_reduce"}), argument_error);
  CHECK_THROWS_AS(g.all_gather(x, y, -3, {"all_gather"}), argument_error);
  CHECK_THROWS_AS(g.broadcast(x, 1, g.size(), {"broadcast"}), argument_error);
  CHECK_THROWS_AS(g.broadcast(x, 1, -1, {"broadcast"}), argument_error);
  CHECK_THROWS_AS(g.shift(x, y, 1, g.size(), 0, {"shift"}), argument_error);
  if (g.size() > 1)
    CHECK_THROWS_AS(g.shift(x, y, 1, g.rank(), (g.rank() + 1) % g.size(), {"shift"}),
                    argument_error);
  std::vector<std::int64_t> const few(size - 1, 0), ones(size, 1);
  std::vector<std::int64_t> negative(size, 0);
  negative.back() = -1;
  CHECK_THROWS_AS(g.all_to_all(x, few, y, ones, {"all_to_all"}), argument_error);
  CHECK_THROWS_AS(g.all_to_all(x, negative, y, negative, {"all_to_all"}), argument_error);
  auto const overlap = dtm::testing::contains("operand and result overlap");
  CHECK_THROWS_WITH(g.all_reduce(x, x + 1, 2, reduction::sum, {"all_reduce"}), overlap);
  CHECK_THROWS_WITH(g.all_gather(x, x, 1, {"all_gather"}), overlap);
  CHECK_THROWS_WITH(g.reduce_scatter(x, x, 1, reduction::sum, {"reduce_scatter"}), overlap);
  if (g.size() > 1)  // alone it moves nothing
    CHECK_THROWS_WITH(g.all_to_all(x, ones, x, ones, {"all_to_all"}), overlap);
  CHECK_THROWS_WITH(g.broadcast(x, 1, 99, {"broadcast"}),
                    dtm::testing::contains("groups_test.cpp:"));
  check_all<double>(gpu, g, 2);
}

TEST_CASE("a group of one copies and never calls NCCL") {
  stand_in::reset();
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto const groups = stand_in::calls("ncclGroupStart");
  check_all<float>(gpu, gpu.along(0), 4);
  CHECK(stand_in::calls("ncclGroupStart") == groups);
  CHECK(stand_in::calls("ncclCommInitRankConfig") == (fresh.size() > 1 ? 1 : 0));
}
