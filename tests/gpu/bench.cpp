// Times of kernels, products and modules on one GPU, as one table.
//
//   gpu_bench [--quick] [--torch FILE]
//
// FILE has the times of the same modules in PyTorch, as torch_bench.py writes them. --quick measures
// one size.

#include "bench.hpp"

#include <exception>

#include "dtm/comm/environment.hpp"

namespace dtm::bench {
namespace {

template <class T>
double square_rate(gpu_context& ctx, plan const& how, stopwatch& watch) {
  std::int64_t const n = how.square;
  auto const left = numbers<T>(ctx, n * n), right = numbers<T>(ctx, n * n);
  scratch<T> result(ctx.memory(), n * n);
  double const time = watch.median([&] {
    local::gemm(ctx, {1, n, n, n}, left.data(), right.data(), result.data());
  });
  return 2 * double(n) * double(n) * double(n) / (time * 1e-3);
}

floors measure_floors(gpu_context& ctx, plan const& how) {
  stopwatch watch(ctx, how.rounds);
  floors most;
  {
    std::int64_t const bytes = std::int64_t(1) << 30;
    auto const from = numbers<float>(ctx, bytes / 4);
    scratch<float> to(ctx.memory(), bytes / 4);
    double const time =
        watch.median([&] { ctx.memory().copy_within(to.data(), from.data(), std::size_t(bytes)); });
    most.copied_per_second = 2 * double(bytes) / (time * 1e-3);
  }
  most.fp32_rate = square_rate<float>(ctx, how, watch);
  most.bf16_rate = square_rate<bf16>(ctx, how, watch);
  std::printf(
      "floors: a copy of 1 GiB reads and writes %.0f GB/s; cuBLAS, %lld squared: fp32 %.1f, bf16 "
      "%.1f TFLOP/s\n",
      most.copied_per_second * 1e-9, static_cast<long long>(how.square), most.fp32_rate * 1e-12,
      most.bf16_rate * 1e-12);
  return most;
}

/// False where the arguments are not understood.
bool parse(int argc, char** argv, plan& how) {
  how.tokens = {384, 768};
  for (int i = 1; i < argc; ++i) {
    std::string const word = argv[i];
    if (word == "--quick") {
      how.tokens = {384};
      how.square = 4096;
      how.rounds = 7;
    } else if (word == "--torch" && i + 1 < argc) {
      how.torch_file = argv[++i];
    } else {
      return false;
    }
  }
  return true;
}

void run(comm::world& world, plan const& how) {
  gpu_context ctx(world, {1, 1, 1}, 0, {.device = 0});
  std::printf("measured on %s, medians of %d\n", ctx.device().describe().c_str(), how.rounds);
  floors const most = measure_floors(ctx, how);
  ctx.device().pool().trim();
  measure_kernels(ctx, how, most);
  measure_products(ctx, how, most);
  measure_modules(ctx, how);
  std::printf("most of the GPU's memory that was held: %.1f GB\n",
              double(ctx.device().memory_account().most_held) * 1e-9);
}

}  // namespace
}  // namespace dtm::bench

int main(int argc, char** argv) {
  dtm::comm::environment mpi(argc, argv);
  dtm::bench::plan how;
  if (!dtm::bench::parse(argc, argv, how)) {
    std::fprintf(stderr, "usage: gpu_bench [--quick] [--torch FILE]\n");
    return 2;
  }
  // checks cost time that is not the kernels'
  dtm::comm::world world(MPI_COMM_WORLD, {120, dtm::comm::check_level::cheap});
  if (world.size() != 1) {
    if (world.rank() == 0) std::fprintf(stderr, "gpu_bench measures one GPU: start one rank\n");
    return 2;
  }
  try {
    dtm::bench::run(world, how);
  } catch (dtm::device_error const& e) {
    std::printf("rank 0: device_error: %s\n", e.what());
    return 3;
  } catch (std::exception const& e) {
    std::printf("gpu_bench: %s\n", e.what());
    return 1;
  }
}
