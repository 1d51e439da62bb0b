#pragma once
// What the host's products and fused operations take from the memory of a context. A plan takes the same
// and computes nothing.

#include <cstdint>
#include <type_traits>

#include "dtm/backend/host/tiles.hpp"
#include "dtm/backend/local.hpp"
#include "dtm/core/scratch.hpp"

namespace dtm::local::detail {

/// `wide` has the result where sums between blocks may not be rounded to Result, and is empty elsewhere.
template <class T, class Result>
struct product_memory {
  using A = accumulate_t<T>;

  product_memory(instruction_set set, gemm_shape const& shape, memory& storage) {
    if constexpr (!std::is_same_v<Result, A>)
      if (tiles::needs_wide_result<A>(set, shape.k))
        wide = scratch<A>(storage, shape.batch * shape.m * shape.n);
    workspace = scratch<A>(storage, tiles::product_workspace<A>(set, shape.k));
  }

  scratch<A> wide, workspace;
};

/// The type in which an operation sums.
template <template <class> class Operation, class T>
accumulate_t<T> summed_in(Operation<T> const&);
template <template <class, class> class Operation, class T, class Result>
accumulate_t<T> summed_in(Operation<T, Result> const&);

template <class Operation>
auto fused_memory(instruction_set set, Operation const& operation, memory& storage) {
  using A = decltype(summed_in(operation));
  return scratch<A>(storage, tiles::with(set, [&](auto loops) {
                      return std::int64_t(loops.fused_workspace_size(operation));
                    }));
}

}  // namespace dtm::local::detail
