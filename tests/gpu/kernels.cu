// The library's kernels for every element type, as the one unit of a program has them.
#include "dtm/backend/cuda/kernels.cuh"

template struct dtm::gpu::kernels_in<dtm::gpu::library_kernels<float, double, dtm::bf16>>;
