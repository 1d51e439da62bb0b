#pragma once
#include <cstdint>

#include <dtm/core/config.hpp>

// [square]
template <class T>
struct square {  // for one index; dtm/kernels/block.hpp is the contract of those for a block
  T const* x;
  T* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = x[i] * x[i]; }
};
// [square]
