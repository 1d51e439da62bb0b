// The kernels of train_cuda.cpp, the one unit that nvcc compiles.
#include <dtm/backend/cuda/kernels.cuh>

template struct dtm::gpu::kernels_in<dtm::gpu::library_kernels<float, dtm::bf16>>;
