#pragma once
// The host backend: Eigen for products, MPI for collectives.

#include "dtm/backend/host/backend.hpp"
#include "dtm/backend/host/gemm.hpp"
#include "dtm/backend/host/rows.hpp"
#include "dtm/comm/apply.hpp"
