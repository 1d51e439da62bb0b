// Memory of a GPU: what is given out again, what the driver is asked for, copies from and to the
// host, and what is said when there is no more.

#include <algorithm>

#include "on_gpu.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

}  // namespace

TEST_CASE("sizes of blocks: a sixteenth is idle at most, and what fits is the same size again") {
  for (std::size_t wanted : {1u, 511u, 512u, 513u, 1000u, 1024u, 1025u, 123456u, 1u << 20})
    for (std::size_t more : {0u, 1u}) {
      auto const size = gpu::size_class::of(wanted + more);
      CHECK(size.bytes >= wanted + more);
      CHECK(size.bytes <= std::max<std::size_t>(512, (wanted + more) * 17 / 16 + 32));
      CHECK(gpu::size_class::of(size.bytes).index == size.index);
      CHECK(gpu::size_class::of(size.bytes).bytes == size.bytes);
      CHECK(gpu::size_class::of(size.bytes + 1).index == size.index + 1);
    }
  CHECK(gpu::size_class::of(std::size_t(1) << 40).index < gpu::size_class::count);
}

TEST_CASE("memory that was released is given out again; the driver is asked once") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  auto const step = [&] {
    scratch<float> a(ctx.memory(), 1000), b(ctx.memory(), 70000);
    scratch<double> c(ctx.memory(), 500);
    return std::vector<void*>{a.data(), b.data(), c.data()};
  };
  auto const first = step();
  auto const asked = ctx.device().driver_allocations();
  stand_in::reset();
  for (int i = 0; i < 3; ++i) CHECK(step() == first);
  CHECK(ctx.device().driver_allocations() == asked);
  CHECK(stand_in::count().pool_allocations == 0);
  CHECK(stand_in::count().driver_allocations == 0);
  CHECK(host_waits() == 0);
  CHECK(host_asks() == 0);
  auto const account = ctx.device().memory_account();
  CHECK(account.held >= 1000 * 4 + 70000 * 4 + 500 * 8);
  CHECK(account.most_used <= account.most_held);
  CHECK(ctx.memory().current_bytes == 0);
  CHECK(ctx.memory().peak_bytes == 288000);
}

TEST_CASE("copies of any size go to the device and back") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  std::int64_t const buffer = std::int64_t(gpu::staging::buffer_bytes) / 4;
  for (std::int64_t count : {std::int64_t(1), buffer - 1, buffer + 1, 4 * buffer, 6 * buffer + 5}) {
    auto values = numbers<float>(count, unsigned(count));
    auto const expected = values;
    auto const x = on_device(ctx, values);
    std::fill(values.begin(), values.end(), 7.0f);  // the source is the caller's again
    auto const again = from_device(ctx, x.data(), count);
    CHECK(same_bits(again, expected));
    scratch<float> y(ctx.memory(), count);
    ctx.memory().copy_within(y.data(), x.data(), std::size_t(count) * 4);
    CHECK(same_bits(from_device(ctx, y.data(), count), expected));
    ctx.memory().fill_bytes(y.data(), 0, std::size_t(count) * 4);
    CHECK(from_device(ctx, y.data(), count) == std::vector<float>(std::size_t(count), 0.0f));
  }
  CHECK(stand_in::calls("cudaStreamSynchronize") == 0);
  CHECK(stand_in::calls("cudaEventSynchronize") == 0);
  CHECK(stand_in::calls("cudaMemcpy") == 0);
}

TEST_CASE("a copy within the device and a fill wait for nothing") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  scratch<float> x(ctx.memory(), 100), y(ctx.memory(), 100);
  ctx.finish();
  stand_in::reset();
  ctx.memory().fill_bytes(x.data(), 0, 400);
  ctx.memory().copy_within(y.data(), x.data(), 400);
  CHECK(host_waits() == 0);
  CHECK(host_asks() == 0);
  CHECK(stand_in::queued() > 0);
  ctx.finish();
  CHECK(stand_in::queued() == 0);
}

TEST_CASE("at check level 2 released memory is NaN") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  float const* freed = nullptr;
  {
    auto const x = on_device(ctx, numbers<float>(10, 1));
    freed = x.data();
  }
  ctx.finish();
  float seen[10];
  stand_in::peek(seen, freed, sizeof seen);
  CHECK(std::all_of(seen, seen + 10, [](float v) { return v != v; }));
}

TEST_CASE("out of memory names what is wanted, held and free, after giving back what is spare") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  { scratch<char> spare(ctx.memory(), 1 << 20); }
  auto const held = ctx.device().memory_account().held;
  stand_in::fail_call("cudaMallocFromPoolAsync", 1, cudaErrorMemoryAllocation);
  {
    scratch<char> found(ctx.memory(), 3 << 20);  // after the spare block went back
    CHECK(ctx.device().memory_account().given_back > 0);
    CHECK(ctx.device().memory_account().held < held + (3 << 20));
  }
  stand_in::fail_call("cudaMallocFromPoolAsync", 1, cudaErrorMemoryAllocation);
  stand_in::fail_call("cudaMallocFromPoolAsync", 2, cudaErrorMemoryAllocation);
  auto const words = words_of<device_error>([&] { scratch<char> x(ctx.memory(), 5 << 20); });
  CHECK_THAT(words,
             contains("dtm cuda: out of memory: 5242880 bytes are wanted; this rank holds "));
  CHECK_THAT(words, contains(" are in use, and the device has "));
  scratch<char> after(ctx.memory(), 5 << 20);  // and the context works on
  ctx.finish();
  CHECK(ctx.memory().current_bytes == 5 << 20);
}
