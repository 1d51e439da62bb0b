#pragma once
// The norm of a gradient and the factor that clips it, without a number read back by the host.

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/block.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// term[block] = the sum of x^2 over the block's range of `each` elements, or added to result[0].
/// Reads 1; 2 flops; memory.
template <class T>
struct square_sums {
  static constexpr int threads = 256;
  using A = accumulate_t<T>;
  T const* x;
  std::int64_t count, each;
  A* term;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    std::int64_t const begin = block.index() * each;
    std::int64_t const end = begin + each < count ? begin + each : count;
    A mine = A(0);
    for (std::int64_t i = begin + block.thread(); i < end; i += block.size())
      mine += A(x[i]) * A(x[i]);
    A const total = block_sum(block, mine);
    if (block.thread() == 0) term[block.index()] = total;
  }
};

/// *result += the sum of the terms. One block.
template <class A>
struct add_terms {
  static constexpr int threads = 256;
  A const* term;
  std::int64_t count;
  A* result;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    A mine = A(0);
    for (std::int64_t i = block.thread(); i < count; i += block.size()) mine += term[i];
    A const total = block_sum(block, mine);
    if (block.thread() == 0) *result += total;
  }
};

/// factor = min(1, max_norm / (norm + 1e-6)) of the sum of squares, and the norm. One index.
template <class A>
struct clip_factor {
  A max_norm;
  A const* total;
  A* factor;
  A* norm;
  DTM_HD void operator()(std::int64_t) const {
    using std::sqrt;
    A const length = sqrt(*total), ratio = max_norm / (length + A(1e-6));
    *norm = length;
    *factor = ratio < A(1) ? ratio : A(1);
  }
};

}  // namespace dtm::kernels
