// A module on a GPU: the same numbers as on the host, forward and backward without a wait, and
// as a captured graph the same bits as without.

#include <algorithm>
#include <cmath>

#include "dtm/host.hpp"
#include "step.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

template <class T>
double worst_difference(std::vector<T> const& a, std::vector<T> const& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(double(a[i]) - double(b[i])) / (1 + std::abs(double(b[i]))));
  return worst;
}

template <class T>
void check_against_host(double unit) {
  context<host, grid> on_cpu(world(), all_on_cp1());
  transition_step<host, T> expected(on_cpu);
  expected();
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  transition_step<cuda, T> step(ctx);
  step();
  CHECK(worst_difference(step.results(), expected.results()) < unit);
}

}  // namespace

TEST_CASE("transition on a GPU is that of the host") {
  check_against_host<double>(1e-12);
  check_against_host<float>(1e-4);
}

TEST_CASE(
    "forward and backward wait for nothing, and the second step asks the driver for nothing") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  transition_step<cuda, float> step(ctx);
  stand_in::reset();
  step();
  CHECK(host_waits() == 0);
  CHECK(host_asks() == 0);
  CHECK(stand_in::queued() > 10);
  auto const asked = ctx.device().driver_allocations();
  auto const most = ctx.device().memory_account().most_held;
  stand_in::reset();
  transition_step<cuda, float> again(ctx);
  again();
  step();
  stand_in::reset();
  auto const settled = ctx.device().driver_allocations();
  CHECK(settled >= asked);
  for (int i = 0; i < 3; ++i) step();
  CHECK(host_waits() == 0);
  CHECK(host_asks() == 0);
  CHECK(stand_in::count().driver_allocations == 0);
  CHECK(stand_in::count().pool_allocations == 0);
  CHECK(ctx.device().driver_allocations() == settled);
  CHECK(ctx.device().memory_account().most_held >= most);
  ctx.finish();
  CHECK(stand_in::queued() == 0);
}

TEST_CASE("a captured step, replayed, has the bits of an eager one") {
  std::vector<float> expected;
  {
    cuda_context ctx(world(), all_on_cp1(), 0, staged());
    transition_step<cuda, float> step(ctx);
    for (int i = 0; i < 3; ++i) step();
    expected = step.results();
  }
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  transition_step<cuda, float> step(ctx);
  step();
  auto const before = values_of(step.gradients.fc1.weight);
  ctx.finish();
  std::int64_t kept = 0;
  {
    auto graph = capture(ctx, [&] { step(); });
    CHECK(graph.nodes() > 10);
    CHECK(graph.bytes() > 0);
    kept = graph.bytes();
    CHECK(same_bits(values_of(step.gradients.fc1.weight), before));  // recorded, not run
    stand_in::reset();
    graph.replay();
    graph();
    CHECK(host_waits() == 0);
    CHECK(host_asks() == 0);
    CHECK(stand_in::count().pool_allocations == 0);
    CHECK(stand_in::calls("cudaGraphLaunch") == 2);
    CHECK(same_bits(step.results(), expected));
    // what an eager step takes meanwhile is not the graph's
    transition_step<cuda, float> other(ctx);
    other();
    other();
    graph.replay();
    other();
    CHECK(same_bits(other.results(), expected));
  }
  CHECK(kept > 0);
  auto const asked = ctx.device().driver_allocations();
  { scratch<char> again(ctx.memory(), 512); }
  CHECK(ctx.device().driver_allocations() == asked);  // the graph's memory is everyone's
}

TEST_CASE("memory that a capture has to ask the driver for is there when it is replayed") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  auto const x = on_device(ctx, numbers<float>(1000, 1));
  scratch<float> y(ctx.memory(), 1000);
  auto const orders = stand_in::calls("cudaStreamWaitEvent");
  auto graph = capture(ctx, [&] {
    scratch<float> between(ctx.memory(), 1000);  // nothing was warm
    ctx.memory().copy_within(between.data(), x.data(), 4000);
    ctx.memory().copy_within(y.data(), between.data(), 4000);
  });
  CHECK(stand_in::calls("cudaStreamWaitEvent") == orders + 1);  // the allocation comes first
  graph.replay();
  CHECK(same_bits(from_device(ctx, y.data(), 1000), numbers<float>(1000, 1)));
}

TEST_CASE("what cannot be a part of a graph is refused by name, and the context works on") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  auto const x = on_device(ctx, numbers<float>(10, 1));
  auto const works = [&] {
    return same_bits(from_device(ctx, x.data(), 10), numbers<float>(10, 1));
  };
  CHECK_THAT(words_of<argument_error>(
                 [&] { (void)capture(ctx, [&] { from_device(ctx, x.data(), 10); }); }),
             contains("dtm cuda: a copy to the host cannot be a part of a graph"));
  CHECK(works());
  CHECK_THAT(words_of<argument_error>(
                 [&] { (void)capture(ctx, [&] { on_device(ctx, numbers<float>(3, 2)); }); }),
             contains("dtm cuda: a copy from the host cannot be a part of a graph"));
  CHECK_THAT(words_of<argument_error>([&] { (void)capture(ctx, [&] { ctx.finish(); }); }),
             contains("dtm cuda: waiting for the device cannot be a part of a graph"));
  CHECK_THAT(
      words_of<argument_error>([&] { (void)capture(ctx, [&] { (void)capture(ctx, [] {}); }); }),
      contains("dtm cuda: capturing a graph cannot be a part of a graph"));
  CHECK(works());
  stand_in::fail_call("cudaMemsetAsync", 1, cudaErrorStreamCaptureUnsupported);
  CHECK_THAT(words_of<device_error>(
                 [&] { (void)capture(ctx, [&] { ctx.memory().fill_bytes(nullptr, 0, 4); }); }),
             contains("cudaMemsetAsync failed: cudaErrorStreamCaptureUnsupported") &&
                 contains("; a graph is being captured, of which this cannot be a part"));
  CHECK(works());
  {
    comm::world strict(world(), {20, comm::check_level::data});
    cuda_context checked(strict, all_on_cp1(), 0, staged());
    CHECK_THAT(words_of<argument_error>([&] { (void)capture(checked, [] {}); }),
               contains("dtm cuda: a graph cannot be captured at check level 3"));
  }
}
