// Compiled by the host's compiler; train_cuda_kernels.cu holds the kernels.
#include <dtm/cuda.cuh>

#include "train.hpp"

template example::outcome example::train<dtm::cuda, float>(example::task const&);
template example::outcome example::train<dtm::cuda, dtm::bf16>(example::task const&);
