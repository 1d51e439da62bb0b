// What runs in which order: the host waits for nothing, the compute stream for results, and a
// forgotten order would show.

#include <cmath>
#include <cstdlib>
#include <memory>

#include "device.hpp"

namespace {

using namespace on_device;
using dtm::gpu::check;
using dtm::testing::ranks;
using dtm::testing::settings;

/// An operation of a stream that does not end before it is told to.
class gate {
 public:
  explicit gate(cudaStream_t stream) {
    check(stand_in::enqueue(
              stream, [open = open_] { return *open; }, "gate"),
          "enqueue");
  }
  void open() { *open_ = true; }

 private:
  std::shared_ptr<bool> open_ = std::make_shared<bool>(false);
};

template <class Work>
void kernel(device& gpu, Work work) {
  check(stand_in::enqueue(
            gpu.compute.native(), [work] { return work(), true; }, "kernel"),
        "enqueue");
}

/// A kernel that copies device memory to the host's, as it finds it.
std::shared_ptr<std::vector<float>> read_later(device& gpu, float const* data, std::size_t count) {
  auto found = std::make_shared<std::vector<float>>(count);
  kernel(gpu, [=] { std::memcpy(found->data(), data, count * sizeof(float)); });
  return found;
}

void write_later(device& gpu, float* data, std::vector<float> const& what) {
  kernel(gpu, [=] { std::memcpy(data, what.data(), what.size() * sizeof(float)); });
}

template <class G>
auto shift_right(G& g, float const* in, float* out, std::int64_t count, char const* name = "x") {
  int const n = g.size();
  return g.shift(in, out, count, (g.rank() + 1) % n, (g.rank() + n - 1) % n, {"shift", name});
}
template <class G>
int left_of(G& g) {
  return g.members()[std::size_t((g.rank() + g.size() - 1) % g.size())];
}

bool drawn_order() {
  char const* const seed = std::getenv("DTM_STAND_IN_SEED");
  return seed != nullptr && std::string(seed) != "0";
}

constexpr std::int64_t count = 40;

}  // namespace

TEST_CASE("the host waits for nothing, and what was given after the wait sees the result") {
  auto const level = GENERATE(check_level::cheap, check_level::signatures);
  world fresh(dtm::testing::world(), settings(level));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto& g = gpu.along(1);
  array<float> const in(gpu, std::size_t(count)), out(gpu, std::size_t(count));
  gpu.finish();
  auto const queries = stand_in::calls("cudaStreamQuery") + stand_in::calls("cudaEventQuery");
  auto const blocking = blocking_calls();

  gate closed(gpu.compute.native());
  write_later(gpu, in.data(), values<float>(fresh.rank(), count));
  auto pending = shift_right(g, in.data(), out.data(), count);
  pending.wait();
  auto const found = read_later(gpu, out.data(), std::size_t(count));
  CHECK(stand_in::calls("cudaStreamQuery") + stand_in::calls("cudaEventQuery") == queries);
  CHECK(blocking_calls() == blocking);
  dtm::testing::world().meet({"all are here"});
  for (int i = 0; i < 100; ++i) stand_in::progress();
  CHECK(stand_in::queued(gpu.compute.native()) > 0);
  CHECK(std::isnan(out.at_present()[0]));
  dtm::testing::world().meet({"all have looked"});

  closed.open();
  gpu.finish();
  CHECK(same(*found, values<float>(left_of(g), count)));
}

TEST_CASE("a kernel between begin and wait runs beside the operation") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  array<float> const in(gpu, values<float>(fresh.rank(), count)), out(gpu, std::size_t(count));
  gpu.finish();
  auto pending = shift_right(gpu.along(1), in.data(), out.data(), count);
  gate closed(gpu.compute.native());  // a long computation
  pending.wait();
  auto const found = read_later(gpu, out.data(), std::size_t(count));
  auto const start = clock::now();
  while (std::isnan(out.at_present()[0]) && seconds_since(start) < 10) {
    stand_in::progress();
    fresh.throw_if_peer_failed();
  }
  CHECK(same(out.at_present(), values<float>(left_of(gpu.along(1)), count)));
  closed.open();
  gpu.finish();
  CHECK(same(*found, out.on_host()));
}

TEST_CASE("shifts of rows and columns are in flight together, waited for in any order") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  device gpu(fresh, {"cp0", "cp1"}, square());
  auto &rows = gpu.along(2), &columns = gpu.along(1);
  array<float> a(gpu, values<float>(fresh.rank(), count)), b(gpu, a.on_host());
  array<float> next_a(gpu, std::size_t(count)), next_b(gpu, std::size_t(count));
  std::vector<std::shared_ptr<std::vector<float>>> found;
  float *now_a = a.data(), *later_a = next_a.data(), *now_b = b.data(), *later_b = next_b.data();
  for (int step = 0; step < 6; ++step) {
    auto first = shift_right(rows, now_a, later_a, count, "a");
    auto second = shift_right(columns, now_b, later_b, count, "b");
    found.push_back(read_later(gpu, now_a, std::size_t(count)));  // the product of this step
    if (step % 2 == 0)
      second.wait(), first.wait();
    else
      first.wait(), second.wait();
    std::swap(now_a, later_a);
    std::swap(now_b, later_b);
  }
  gpu.finish();
  for (int step = 0; step < 6; ++step) {
    int const n = rows.size();
    auto const from = rows.members()[std::size_t((rows.rank() + 6 * n - step) % n)];
    CHECK(same(*found[std::size_t(step)], values<float>(from, count)));
  }
}

TEST_CASE("memory that is released after the wait may be used again at once") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto& g = gpu.along(1);
  std::vector<std::shared_ptr<std::vector<float>>> found;
  for (int step = 0; step < 20; ++step) {
    array<float> const in(gpu, std::size_t(count)), out(gpu, std::size_t(count));
    write_later(gpu, in.data(), values<float>(fresh.rank() + step, count));
    shift_right(g, in.data(), out.data(), count).wait();
    found.push_back(read_later(gpu, out.data(), std::size_t(count)));
  }
  gpu.finish();
  for (int step = 0; step < 20; ++step)
    CHECK(same(*found[std::size_t(step)], values<float>(left_of(g) + step, count)));
}

TEST_CASE("an operation that nobody waited for is waited for by the compute stream all the same") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto& g = gpu.along(1);
  array<float> const in(gpu, values<float>(fresh.rank(), count)), out(gpu, std::size_t(count));
  SECTION("forgotten") {
    { auto forgotten = shift_right(g, in.data(), out.data(), count); }
  }
  SECTION("an exception passes") {
    try {
      auto under_way = shift_right(g, in.data(), out.data(), count);
      throw 1;
    } catch (int) {
    }
  }
  SECTION("another takes its place") {
    auto pending = shift_right(g, in.data(), out.data(), count);
    pending = g.barrier({"barrier"});
    pending.wait();
  }
  auto const found = read_later(gpu, out.data(), std::size_t(count));
  gpu.finish();
  CHECK(same(*found, values<float>(left_of(g), count)));
}

TEST_CASE("a dropped order of the streams gives wrong data, which these tests see") {
  if (ranks() == 1 || drawn_order()) return;
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto& g = gpu.along(1);
  array<float> const in(gpu, std::size_t(count)), out(gpu, std::size_t(count));
  auto const mine = values<float>(fresh.rank(), count), theirs = values<float>(left_of(g), count);

  SECTION("the operation does not wait for its operand") {
    gpu.finish();
    gate closed(gpu.compute.native());
    write_later(gpu, in.data(), mine);
    stand_in::drop_waits(1);
    auto pending = shift_right(g, in.data(), out.data(), count);
    pending.wait();
    for (auto const start = clock::now(); seconds_since(start) < 0.3;) {
      stand_in::progress();
      fresh.throw_if_peer_failed();
    }
    closed.open();
    gpu.finish();
    CHECK(!same(out.on_host(), theirs));
  }
  SECTION("the compute stream does not wait for the result") {
    write_later(gpu, in.data(), mine);
    auto pending = shift_right(g, in.data(), out.data(), count);
    stand_in::drop_waits(1);
    pending.wait();
    auto const found = read_later(gpu, out.data(), std::size_t(count));
    while (stand_in::queued(gpu.compute.native()) > 0) (void)cudaStreamQuery(gpu.compute.native());
    CHECK(std::isnan((*found)[0]));
    gpu.finish();
    CHECK(same(out.on_host(), theirs));
  }
}

TEST_CASE("from check level 2 on, who reads a result before the wait finds NaN") {
  if (ranks() == 1 || drawn_order()) return;
  for (auto level : {check_level::signatures, check_level::cheap}) {
    world fresh(dtm::testing::world(), settings(level));
    device gpu(fresh, {"cp0"}, {fresh.size()});
    array<float> const in(gpu, values<float>(fresh.rank(), count));
    array<float> const out(gpu, std::vector<float>(std::size_t(count), 1));
    gpu.finish();
    auto pending = shift_right(gpu.along(1), in.data(), out.data(), count);
    auto const found = read_later(gpu, out.data(), std::size_t(count));  // too early
    while (!gpu.compute.idle()) continue;
    pending.wait();
    CHECK(std::isnan((*found)[0]) == (level == check_level::signatures));
    gpu.finish();
    CHECK(same(out.on_host(), values<float>(left_of(gpu.along(1)), count)));
  }
}

TEST_CASE("a step is captured, and replayed without the host") {
  world fresh(dtm::testing::world(), settings(check_level::signatures));
  device gpu(fresh, {"cp0", "cp1"}, square());
  array<float> const in(gpu, std::size_t(count)), row(gpu, std::size_t(count)),
      both(gpu, std::size_t(count)), sum(gpu, std::size_t(count));
  auto const step = [&] {
    auto first = shift_right(gpu.along(2), in.data(), row.data(), count);
    auto second = gpu.along(3).all_reduce(in.data(), sum.data(), count, reduction::sum,
                                          {"all_reduce", "sum"});
    first.wait();
    shift_right(gpu.along(1), row.data(), both.data(), count).wait();
    second.wait();
    gpu.along(3).barrier({"barrier"}).wait();
  };
  step();  // connects
  gpu.finish();
  auto const stream = gpu.compute.native();
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of a capture");
  step();
  CHECK_THROWS_WITH(gpu.finish(), dtm::testing::contains("being captured"));
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "end of a capture");
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  auto const entries = gpu.mesh.ledger().entries.size();
  auto const calls = stand_in::calls("ncclGroupStart");
  for (int replay = 0; replay < 3; ++replay) {
    write_later(gpu, in.data(), values<float>(fresh.rank() + 10 * replay, count));
    check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
    auto const shifted = read_later(gpu, both.data(), std::size_t(count));
    auto const added = read_later(gpu, sum.data(), std::size_t(count));
    step();  // and as usual, between replays
    gpu.finish();
    auto const &rows = gpu.along(2), &columns = gpu.along(1);
    int const up = (columns.rank() + columns.size() - 1) % columns.size();
    int const left = (rows.rank() + rows.size() - 1) % rows.size();
    CHECK(same(*shifted, values<float>(up * rows.size() + left + 10 * replay, count)));
    std::vector<float> expected(static_cast<std::size_t>(count));
    for (int r = 0; r < fresh.size(); ++r)
      for (std::int64_t i = 0; i < count; ++i)
        expected[std::size_t(i)] += value<float>(r + 10 * replay, i);
    CHECK(same(*added, expected));
  }
  CHECK(gpu.mesh.ledger().entries.size() == entries + 3 * 4);  // replays are not counted
  if (fresh.size() > 1) CHECK(stand_in::calls("ncclGroupStart") > calls);
  check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

TEST_CASE("an operation that is under way when a capture begins is refused in it") {
  if (ranks() == 1) return;
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  auto& g = gpu.along(1);
  array<float> const in(gpu, values<float>(fresh.rank(), count)), out(gpu, std::size_t(count));
  auto before = shift_right(g, in.data(), out.data(), count);
  check(cudaStreamBeginCapture(gpu.compute.native(), cudaStreamCaptureModeThreadLocal), "capture");
  CHECK_THROWS_WITH(g.barrier({"barrier"}),
                    dtm::testing::contains("1 operations that were begun before the capture"));
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(gpu.compute.native(), &graph), "end of a capture");
  check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  before.wait();
  CHECK(same(out.on_host(), values<float>(left_of(g), count)));
}
