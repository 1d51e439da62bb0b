// Which GPU a rank gets, and what is refused: the same error on all ranks.

#include <cstdlib>

#include "dtm/comm/apply.hpp"
#include "on_gpu.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

int devices() {
  char const* const text = std::getenv("DTM_STAND_IN_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}
bool shared() {
  return ranks() > devices();
}

}  // namespace

TEST_CASE("NCCL is refused where ranks share a GPU; MPI must be asked for") {
  cuda_options options = staged();
  options.transport = gpu::transport::nccl;
  if (shared()) {
    auto const words =
        words_of<argument_error>([&] { cuda_context ctx(world(), all_on_cp1(), 0, options); });
    CHECK_THAT(words, contains(devices() == 1 ? "dtm cuda: ranks 0, 1 share one GPU"
                                              : "dtm cuda: ranks 0, 2 share one GPU"));
    CHECK_THAT(words, contains("choose transport::staged_mpi in the options of the context"));
  } else {
    cuda_context ctx(world(), all_on_cp1(), 0, options);
    CHECK(ctx.device().facts().ordinal == rank());  // in turn
    CHECK_THAT(ctx.device().describe(), contains(", NCCL, cuBLAS"));
  }
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  CHECK(ctx.device().facts().ordinal == rank() % devices());
}

TEST_CASE("tiles travel by way of the host where that was chosen") {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  using row = tensor<float, layout<grid, shape<c<4>>, replicate, replicate, partial<sum>>, cuda>;
  row x(ctx, extents{});
  std::vector<float> const mine{1, 2, 3, float(rank())};
  x.copy_from_host(mine.data());
  auto const total = apply<all_reduce<cp1>>(ctx, x, "x");
  std::vector<float> got(4);
  total.copy_to_host(got.data());
  float const n = float(ranks());
  CHECK(got == std::vector<float>{n, 2 * n, 3 * n, n * (n - 1) / 2});
}

TEST_CASE("ranks that choose differently, or of which one has no GPU, all throw the same") {
  auto options = staged();
  if (ranks() > 1) {
    if (rank() == 1) options.products = gpu::products::own;
    CHECK(
        words_of<argument_error>([&] { cuda_context ctx(world(), all_on_cp1(), 0, options); }) ==
        "dtm cuda: the ranks chose different options: rank 0 MPI by way of the host, cuBLAS, rank "
        "1 MPI by way of the host, own products");
  }
  if (rank() == ranks() - 1) stand_in::fail_call("cudaGetDeviceCount", 1, cudaErrorNoDevice);
  CHECK_THAT(words_of<device_error>([&] { cuda_context ctx(world(), all_on_cp1(), 0, staged()); }),
             contains("this process sees no GPU"));
  if (rank() == 0) stand_in::fail_call("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
  CHECK_THAT(words_of<device_error>([&] { cuda_context ctx(world(), all_on_cp1(), 0, staged()); }),
             contains("dtm cuda: cudaHostAlloc failed: cudaErrorMemoryAllocation"));
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
}

TEST_CASE("a captured exchange by NCCL is replayed in its place between the kernels") {
  CHECK(devices() > 0);
  if (shared()) return;
  auto options = staged();
  options.transport = gpu::transport::nccl;
  cuda_context ctx(world(), all_on_cp1(), 0, options);
  using row = tensor<float, layout<grid, shape<c<4>>, replicate, replicate, partial<sum>>, cuda>;
  row x(ctx, extents{});
  std::vector<float> got(4);
  scratch<float> kept(ctx.memory(), 4);
  auto const step = [&] {
    auto const total = apply<all_reduce<cp1>>(ctx, x, "x");
    ctx.memory().copy_within(kept.data(), total.data(), 16);
  };
  step();  // connects the ranks
  ctx.finish();
  auto graph = capture(ctx, step);
  for (float round : {1.0f, 2.0f, 3.0f}) {
    std::vector<float> const mine(4, round * float(rank() + 1));
    x.copy_from_host(mine.data());
    graph.replay();
    float const n = float(ranks());
    CHECK(from_device(ctx, kept.data(), 4) == std::vector<float>(4, round * n * (n + 1) / 2));
  }
}
