#pragma once
// The launch of a kernel, for nvcc. Other compilers see the declaration in launch.hpp.

#if !defined(__CUDACC__)
#error "dtm: backend/cuda/launch.cuh is device code; nvcc compiles it"
#endif

#include "dtm/backend/cuda/block.cuh"
#include "dtm/backend/cuda/launch.hpp"

namespace dtm::gpu {

namespace detail {

/// Hidden: two shared objects that launch the same kernel each have their own. The arguments stay
/// where the launch puts them, in constant memory.
template <class Kernel>
__attribute__((visibility("hidden"))) __global__ void __launch_bounds__(
    Kernel::threads, kernels::resident_blocks<Kernel>())
    run_kernel(const __grid_constant__ Kernel kernel) {
  cuda_block block;
  kernel(block);
}

}  // namespace detail

template <class Kernel>
cudaError_t launch_kernel(cudaStream_t stream, std::int64_t blocks, Kernel const& kernel) {
  static_assert(
      Kernel::threads > 0 && Kernel::threads % kernels::warp_size == 0 && Kernel::threads <= 1024,
      "dtm kernel: threads of a block are a multiple of 32, 1024 at most");
  detail::run_kernel<<<unsigned(blocks), Kernel::threads, 0, stream>>>(kernel);
  return cudaGetLastError();
}

}  // namespace dtm::gpu
