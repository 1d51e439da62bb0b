#pragma once
// The GPU backend: kernels, cuBLAS or own products, NCCL. A host compiler takes it as well; then
// one unit of the program, compiled by nvcc, holds the kernels (backend/cuda/kernels.cuh).

#if defined(__CUDACC__)
#pragma nv_diag_suppress 554  // nvcc does not see that a constraint makes a conversion unnecessary
#endif

#include "dtm/backend/cuda/backend.hpp"
#include "dtm/backend/cuda/graph.hpp"
#include "dtm/backend/cuda/product.hpp"
#include "dtm/backend/device/boxes.hpp"
#include "dtm/backend/device/operations.hpp"
#include "dtm/comm/apply.hpp"

#if defined(__CUDACC__)
#include "dtm/backend/cuda/launch.cuh"
#endif
