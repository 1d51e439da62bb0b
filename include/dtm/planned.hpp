#pragma once
// The planner: memory and messages of any number of ranks from one process, without data. Module and
// model headers may come before or after it.

#include "dtm/backend/measure.hpp"
#include "dtm/backend/planned/operations.hpp"
#include "dtm/comm/apply.hpp"
#include "dtm/comm/plan_ranks.hpp"
