#pragma once
// The launch of kernels in tests without a GPU: the stand-in's stream runs them on the emulator
// when it comes to them. One translation unit or many may include it, as none may see launch.cuh.

#include "dtm/backend/cuda/launch.hpp"
#include "dtm/backend/emulated/launch.hpp"
#include "gpu/stand_in/stand_in.hpp"

namespace dtm::gpu {

template <class Kernel>
cudaError_t launch_kernel(cudaStream_t stream, std::int64_t blocks, Kernel const& kernel) {
  return stand_in::enqueue(
      stream, [blocks, kernel] { return emulation::launch(blocks, kernel), true; },
      emulation::detail::type_name<Kernel>());
}

}  // namespace dtm::gpu
