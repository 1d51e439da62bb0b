#pragma once
// The operations of backend/fused_rows.hpp on the host, by the loops of host/tiles.hpp; where they are
// compiled is said in host/gemm.hpp.

#include "dtm/backend/fused_rows.hpp"
#include "dtm/backend/host/instructions.hpp"
#include "dtm/core/device.hpp"

namespace dtm::local {

namespace detail {

/// In backend/host/products.hpp.
template <class Operation>
void host_fused(instruction_set set, Operation const& operation, memory& storage);

}  // namespace detail

template <>
struct fused_rows<host> {
  static constexpr bool available = true;
  template <class Context, class Operation>
  static void run(Context& ctx, Operation const& operation) {
    detail::host_fused(ctx.device().instructions(), operation, ctx.memory());
  }
};

}  // namespace dtm::local

#ifndef DTM_SEPARATE_PRODUCTS
#include "dtm/backend/host/products.hpp"
#endif
