// What a failing call says, on one rank: which call, where, why, and what may help.

#include "on_gpu.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

struct nothing {
  static constexpr int threads = 32;
  template <class Block>
  void operator()(Block&) const {}
};

void make(cuda_options const& options = staged()) {
  cuda_context ctx(world(), all_on_cp1(), 0, options);
}

}  // namespace

TEST_CASE("without a device, or with an old driver, the first call says so") {
  stand_in::fail_call("cudaGetDeviceCount", 1, cudaErrorNoDevice);
  auto words = words_of<device_error>([] { make(); });
  CHECK_THAT(words, contains("dtm cuda: cudaGetDeviceCount failed: cudaErrorNoDevice ("));
  CHECK_THAT(words, contains("; this process sees no GPU (CUDA_VISIBLE_DEVICES may hide it)"));
  stand_in::fail_call("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
  words = words_of<device_error>([] { make(); });
  CHECK_THAT(words, contains("cudaErrorInsufficientDriver"));
  CHECK_THAT(words, contains("; no driver is installed, or it is older than CUDA "));
}

TEST_CASE("a device that is not there is refused") {
  auto options = staged();
  options.device = 7;
  CHECK_THAT(words_of<argument_error>([&] { make(options); }),
             contains("dtm cuda: device 7 was asked for, but this process sees 1"));
}

TEST_CASE("a call that fails while the context is made leaves nothing behind") {
  make();
  auto const live = stand_in::count().live_blocks;
  for (char const* call : {"cudaStreamCreateWithFlags", "cudaEventCreateWithFlags",
                           "cudaMemPoolCreate", "cudaHostAlloc", "cudaSetDevice"}) {
    stand_in::fail_call(call, 1, cudaErrorInvalidValue);
    auto const words = words_of<device_error>([] { make(); });
    CHECK_THAT(words,
               contains(std::string("dtm cuda: ") + call + " failed: cudaErrorInvalidValue"));
    CHECK_THAT(words, contains(".hpp:"));
    CHECK(stand_in::count().live_blocks == live);
  }
  stand_in::fail_call("cublasCreate", 1, CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK_THAT(words_of<device_error>([] { make(); }),
             contains("dtm cuda: cublasCreate failed: CUBLAS_STATUS_NOT_INITIALIZED ("));
  make();
}

TEST_CASE("a launch that fails names its kernel, and is not reported twice") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  ctx.launch(0, nothing{});
  CHECK_THAT(words_of<argument_error>([&] { ctx.launch(std::int64_t(1) << 31, nothing{}); }),
             contains("nothing was launched with 2147483648 blocks"));
  CHECK_THAT(words_of<argument_error>([&] { ctx.launch(-1, nothing{}); }),
             contains("nothing was launched with -1 blocks"));
  stand_in::set_last_error(cudaErrorNoKernelImageForDevice);
  auto const words = words_of<device_error>([&] {
    gpu::check(cudaGetLastError(), "the launch of kernel " + gpu::detail::type_name<nothing>());
  });
  CHECK_THAT(words, contains("nothing failed: cudaErrorNoKernelImageForDevice"));
  CHECK_THAT(words, contains("compiled for other architectures (DTM_CUDA_ARCHITECTURES)"));
  ctx.launch(2, nothing{});
  ctx.finish();
}

TEST_CASE("a kernel that fails is reported by the next wait, and the context can be left") {
  auto const words = words_of<device_error>([] {
    cuda_context ctx(world(), all_on_cp1(), 0, staged());
    CHECK(stand_in::enqueue_fault(ctx.device().compute()) == cudaSuccess);
    ctx.finish();
  });
  CHECK_THAT(words, contains("cudaErrorIllegalAddress"));
  CHECK_THAT(words, contains("a kernel that was launched before has failed"));
  stand_in::reset();
}

TEST_CASE("a wait for a device that does not come to rest ends at the deadline") {
  comm::world impatient(world(), {0.3, comm::check_level::cheap});
  std::string words;
  bool release = false;
  {
    cuda_context ctx(impatient, all_on_cp1(), 0, staged());
    REQUIRE(stand_in::enqueue(ctx.device().compute(), [&] { return release; }) == cudaSuccess);
    words = words_of<deadline_exceeded>([&] { ctx.finish(); });
    release = true;
  }
  CHECK_THAT(words, contains("deadline of 0.3 s exceeded in finish"));
}

TEST_CASE("a device that never comes to rest is left behind, in time") {
  comm::world impatient(world(), {0.3, comm::check_level::cheap});
  auto const start = comm::clock::now();
  {
    cuda_context ctx(impatient, all_on_cp1(), 0, staged());
    REQUIRE(stand_in::enqueue(ctx.device().compute(), [] { return false; }) == cudaSuccess);
    float value = 0;
    auto const x = on_device(ctx, std::vector<float>{1});
    CHECK_THAT(words_of<deadline_exceeded>([&] { ctx.memory().copy_to_host(&value, x.data(), 4); }),
               contains("deadline of 0.3 s exceeded in "));
  }
  CHECK(comm::seconds_since(start) < 10);
  stand_in::reset();
}

TEST_CASE("a context says what it runs on") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  CHECK_THAT(ctx.device().describe(), contains("(device 0 of 1, compute capability "));
  CHECK_THAT(ctx.device().describe(), contains(", MPI by way of the host, cuBLAS"));
}
