// [kernels]
#include <dtm/backend/cuda/kernels.cuh>

template struct dtm::gpu::kernels_in<dtm::gpu::library_kernels<float>>;
// [kernels]
// [own]
#include "square.hpp"

template struct dtm::gpu::kernels_in<
    dtm::kernels::kernel_list<dtm::kernels::device_kernel_t<square<float>>>>;
// [own]
