// Every operation of the block, compiled for a GPU. Compiling is the test.

#include "dtm/backend/cuda/block.cuh"
#include "kernels.hpp"

namespace {

template <class Kernel>
__global__ void run(Kernel kernel) {
  dtm::gpu::cuda_block block;
  kernel(block);
}

template <class... Kernel>
void launch_all(Kernel... kernel) {
  (run<<<1, Kernel::threads>>>(kernel), ...);
}

}  // namespace

int main() {
  using namespace dtm;
  using namespace dtm::testing;
  launch_all(transpose{}, where_am_i{}, chain{}, ask{}, shuffles<float>{}, shuffles<double>{},
             shuffles<bf16>{}, shuffles<std::int64_t>{}, rotate_warp{}, reductions<float>{},
             reductions<double>{}, histogram<int>{}, histogram<std::int64_t>{},
             histogram<std::uint32_t>{}, vectors<float, 4>{}, vectors<bf16, 8>{},
             vectors<double, 2>{}, pipeline{}, multiply_tile{}, functions<float>{},
             functions<double>{}, shared_bf16{}, twice{});
}
