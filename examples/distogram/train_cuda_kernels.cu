// The kernels of train_cuda.cpp, the one unit that nvcc compiles.
#include <dtm/backend/cuda/kernels.cuh>

template struct dtm::gpu::kernels_in<dtm::gpu::library_kernels<float, dtm::bf16>>;
// the flag of cyclic chains, that one rank of an axis keeps, is an int
template struct dtm::gpu::kernels_in<
    dtm::kernels::kernel_list<dtm::kernels::device_kernel_t<dtm::kernels::set_zero<std::int32_t>>>>;
