#pragma once
// The GPU backend: kernels, cuBLAS or own products, NCCL. A host compiler takes it as well; then
// one unit of the program, compiled by nvcc, holds the kernels (backend/cuda/kernels.cuh).

#include "dtm/backend/cuda/backend.hpp"
#include "dtm/backend/cuda/graph.hpp"
#include "dtm/backend/cuda/product.hpp"
#include "dtm/backend/device/for_each.hpp"
#include "dtm/backend/device/rows.hpp"
#include "dtm/comm/apply.hpp"

#if defined(__CUDACC__)
#include "dtm/backend/cuda/launch.cuh"
#endif
