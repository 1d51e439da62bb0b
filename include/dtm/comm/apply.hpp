#pragma once
// Every typed collective: apply<all_gather<cp1>>(ctx, x, "x"), and begin<...>(...) with .wait().

#include "dtm/comm/all_gather.hpp"
#include "dtm/comm/all_reduce.hpp"
#include "dtm/comm/all_to_all.hpp"
#include "dtm/comm/reduce_scatter.hpp"
#include "dtm/comm/ring_shift.hpp"
#include "dtm/comm/shared_planes.hpp"
