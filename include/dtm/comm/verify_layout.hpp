#pragma once
// The layout that from_local claims, verified (law L15). Collective over the world at check level
// 2 and above: a wrong size on one rank is the same layout_error on all. At level 3 also: where
// the layout says replicate, the bits must be equal, or all ranks throw replication_error. Below
// level 2 only the local size is checked.

#include <cstdint>
#include <string>

#include "dtm/comm/agreement.hpp"
#include "dtm/comm/signature.hpp"
#include "dtm/core/host_copy.hpp"

namespace dtm {

namespace detail {

template <class Layout>
constexpr unsigned replicated_axes() {
  unsigned mask = 0;
  [&]<int... Axis>(std::integer_sequence<int, Axis...>) {
    ((mask |= is_replicate<typename Layout::template placement_at<Axis>> ? 1u << Axis : 0u), ...);
  }
  (std::make_integer_sequence<int, Layout::mesh_type::rank>{});
  return mask;
}

}  // namespace detail

/// Found by from_local where the context has a world; `got` is the size of the block that was
/// given.
template <class Context, class T, class Layout, class Device>
requires has_values<Device> && requires(Context& ctx) {
  ctx.world();
}
void verify_claim(Context& ctx, tensor<T, Layout, Device> const& x, std::int64_t got) {
  auto& world = ctx.world();
  if (int(world.level()) < int(comm::check_level::signatures)) return;
  comm::agree(world, [&] {
    if (got != x.size()) detail::refuse_local_size("from_local", got, x.size());
  });
}

template <class Context, class T, class Layout, class Device>
requires has_values<Device> && requires(Context& ctx) {
  ctx.world();
}
void verify_replicas(Context& ctx, tensor<T, Layout, Device> const& x) {
  constexpr unsigned mask = detail::replicated_axes<Layout>();
  if constexpr (mask != 0) {
    auto& world = ctx.world();
    if (int(world.level()) < int(comm::check_level::data)) return;
    auto const values = on_host(x);
    std::int64_t const hash = comm::hash_bytes(values.data(), std::size_t(values.bytes()));
    std::int64_t const mine[] = {hash, -hash};
    std::int64_t most[2];
    auto& replicas = ctx.groups().along(mask);
    replicas
        .all_reduce(mine, most, 2, comm::reduction::max,
                    comm::call{"verify_replicas", "", 0, comm::call_site::current()})
        .wait();
    comm::agree(world, [&] {
      if (most[0] != -most[1])
        throw replication_error(
            "dtm from_local: the local block is claimed to be replicated on " +
            std::string(replicas.name()) +
            " and its bits differ there; claim the placement that it has, or broadcast it");
    });
  }
}

}  // namespace dtm
