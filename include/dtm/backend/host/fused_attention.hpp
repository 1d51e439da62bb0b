#pragma once
// The operations of backend/fused_attention.hpp and attended_rows.hpp on the host, as
// host/fused_rows.hpp has its own.

#include "dtm/backend/attended_rows.hpp"
#include "dtm/backend/host/fused_rows.hpp"

namespace dtm::local {

template <>
struct fused_attention<host> {
  static constexpr bool available = true;
  template <class Context, class Operation>
  static void run(Context& ctx, Operation const& operation) {
    detail::host_fused(ctx.device().instructions(), operation, ctx.memory());
  }
};

template <>
struct fused_attended_rows<host> : fused_attention<host> {};

}  // namespace dtm::local
