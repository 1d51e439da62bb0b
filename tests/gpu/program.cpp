// A complete program for a GPU: the host compiler's part. It links only where every kernel that
// its modules launch has been made. Without a GPU it is refused, on all ranks, with a sentence.

#include <cstdio>
#include <exception>

#include "dtm/comm/environment.hpp"
#include "modules.hpp"

void run_modules_by_nvcc(dtm::testing::gpu_context& ctx);

int main(int argc, char** argv) {
  dtm::comm::environment mpi(argc, argv);
  dtm::comm::world world(MPI_COMM_WORLD);
  try {
    dtm::testing::gpu_context ctx(world, {1, 1, world.size()});
    dtm::testing::run_modules<float>(ctx);
    dtm::testing::run_modules<dtm::bf16>(ctx);
    run_modules_by_nvcc(ctx);
    if (world.rank() == 0) std::printf("modules ran on %s\n", ctx.device().describe().c_str());
  } catch (dtm::device_error const& e) {
    std::printf("rank %d: device_error: %s\n", world.rank(), e.what());
    return 3;
  }
}
