#pragma once
// The launch of a kernel, declared for every compiler. A device compiler that includes launch.cuh
// defines it; a program has one such unit (kernels.cuh), and a kernel that is missing there is an
// undefined reference to launch_kernel<Kernel>.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace dtm::gpu {

/// Puts kernel(block), for every block of the grid, into the stream. The status of the launch
/// itself; blocks is from 1 to most_launched.
template <class Kernel>
cudaError_t launch_kernel(cudaStream_t stream, std::int64_t blocks, Kernel const& kernel);

/// Of the first dimension of a grid.
inline constexpr std::int64_t most_launched = 2147483647;

}  // namespace dtm::gpu
