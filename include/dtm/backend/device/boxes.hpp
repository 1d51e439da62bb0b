#pragma once
// Tiles packed for messages by kernels, on every device that runs them.

#include "dtm/backend/boxes.hpp"
#include "dtm/comm/exchange.hpp"
#include "dtm/core/device.hpp"

namespace dtm::comm {

template <device_like Device>
struct box_copy<Device> {
  template <class Context, class T, int Rank>
  static void pack(Context& ctx, T const* tile_data, box<Rank> const& tile, box<Rank> const& part,
                   T* packed) {
    local::pack_box(ctx, tile_data, tile, part, packed);
  }
  template <class Context, class T, int Rank>
  static void unpack(Context& ctx, T const* packed, T* tile_data, box<Rank> const& tile,
                     box<Rank> const& part) {
    local::unpack_box(ctx, packed, tile_data, tile, part);
  }
  template <class Context, class T, int Rank>
  static void unpack_add(Context& ctx, T const* packed, T* tile_data, box<Rank> const& tile,
                         box<Rank> const& part) {
    local::unpack_box_add(ctx, packed, tile_data, tile, part);
  }
};

}  // namespace dtm::comm
