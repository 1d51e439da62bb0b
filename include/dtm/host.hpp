#pragma once
// The host backend: its own loops, MPI for collectives.

#include "dtm/backend/host/backend.hpp"
#include "dtm/backend/host/fused_attention.hpp"
#include "dtm/backend/host/fused_rows.hpp"
#include "dtm/backend/host/gemm.hpp"
#include "dtm/backend/host/rows.hpp"
#include "dtm/comm/apply.hpp"
