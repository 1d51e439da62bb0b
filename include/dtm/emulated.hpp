#pragma once
// The emulated backend: the device's kernels on the CPU, MPI for collectives. For tests.

#include "dtm/backend/device/boxes.hpp"
#include "dtm/backend/device/operations.hpp"
#include "dtm/backend/emulated/backend.hpp"
#include "dtm/comm/apply.hpp"
