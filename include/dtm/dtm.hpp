#pragma once
// The vocabulary alone: dimensions, meshes, placements, layouts, tensors, the placement algebra,
// collectives as types, contracts and budgets. Needs no MPI or CUDA. A backend header
// (dtm/host.hpp) makes it run.

#include "dtm/contract/contract.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/core/config.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/core/refusals.hpp"
#include "dtm/core/space.hpp"
#include "dtm/core/tensor.hpp"
