#pragma once
// Who sends which box to whom, when a tensor goes from one layout to another inside a group of
// ranks. Known from the mesh alone: no metadata is exchanged. all_to_all and transpose are this
// plan with different layouts; any mesh, square or not, and uneven counts between pairs of ranks
// are ordinary.

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "dtm/core/tensor.hpp"

namespace dtm::comm {

/// Ranks of a group of mesh axes, enumerated row-major in mesh order.
template <class Mesh>
struct peers {
  site<Mesh> const& here;
  unsigned mask;

  int count() const {
    int product = 1;
    for (int a = 0; a < Mesh::rank; ++a)
      if (mask >> a & 1u) product *= here.sizes[a];
    return product;
  }
  int own() const {
    int index = 0;
    for (int a = 0; a < Mesh::rank; ++a)
      if (mask >> a & 1u) index = index * here.sizes[a] + here.coordinates[a];
    return index;
  }
  /// Coordinates of a peer; on the axes outside the group they are this rank's.
  void coordinates(int peer, int (&result)[Mesh::rank]) const {
    for (int a = Mesh::rank - 1; a >= 0; --a) {
      result[a] = here.coordinates[a];
      if (!(mask >> a & 1u)) continue;
      result[a] = peer % here.sizes[a];
      peer /= here.sizes[a];
    }
  }
};

/// The boxes this rank sends to and receives from each peer, in rank order of the group.
template <int Rank>
struct exchange_plan {
  std::vector<box<Rank>> send, receive;
  std::vector<std::int64_t> send_counts, receive_counts;
  std::int64_t sent = 0, received = 0;

  void add(box<Rank> const& outgoing, box<Rank> const& incoming) {
    send.push_back(outgoing);
    receive.push_back(incoming);
    send_counts.push_back(outgoing.size());
    receive_counts.push_back(incoming.size());
    sent += outgoing.size();
    received += incoming.size();
  }
};

/// A tile without what lies beyond the channels of planes<C>.
template <class... D>
constexpr auto without_padding(box<int(sizeof...(D))> tile, shape<D...>) {
  int d = 0;
  [[maybe_unused]] auto const clip = [&](std::int64_t channels) {
    if (channels > 0 && tile.end[d] > channels) tile.end[d] = channels;
    ++d;
  };
  (clip(dtm::detail::plane_channels<D>), ...);
  return tile;
}

/// Plan from Source to Target. `serves(from, to)` decides, where the source is replicated, which
/// replica sends; for sharded sources it is always true.
template <class Source, class Target, class Serves>
exchange_plan<Source::rank> plan_exchange(site<typename Source::mesh_type> const& here,
                                          unsigned mask,
                                          global_extents<Source::rank> const& source_extents,
                                          global_extents<Target::rank> const& target_extents,
                                          Serves serves) {
  using mesh_type = typename Source::mesh_type;
  peers<mesh_type> const group{here, mask};
  exchange_plan<Source::rank> plan;
  auto const source_of = [&](int const* coordinates) {
    return without_padding(tile_of<Source>(source_extents, here.sizes, coordinates),
                           typename Source::shape_type{});
  };
  auto const my_source = source_of(here.coordinates);
  auto const my_target = tile_of<Target>(target_extents, here.sizes, here.coordinates);
  for (int peer = 0; peer < group.count(); ++peer) {
    int there[mesh_type::rank];
    group.coordinates(peer, there);
    box<Source::rank> outgoing{}, incoming{};
    if (serves(here.coordinates, there))
      outgoing = intersection(my_source, tile_of<Target>(target_extents, here.sizes, there));
    if (serves(there, here.coordinates)) incoming = intersection(source_of(there), my_target);
    plan.add(outgoing, incoming);
  }
  return plan;
}

namespace detail {

// Visits the rows (runs of the last dimension) of a box inside a tile: visit(offset in the tile,
// length).
template <int Rank, class Visit>
void each_run(box<Rank> const& tile, box<Rank> const& part, Visit visit) {
  if (part.size() == 0) return;
  if constexpr (Rank == 0) {
    visit(std::int64_t{0}, std::int64_t{1});
  } else {
    // dimensions that are complete merge with the run
    int last = Rank - 1;
    std::int64_t run = part.extent(last);
    while (last > 0 && part.extent(last) == tile.extent(last)) run *= part.extent(--last);
    std::int64_t index[Rank] = {};
    for (;;) {
      std::int64_t offset = 0;
      for (int d = 0; d < Rank; ++d)
        offset = offset * tile.extent(d) + (part.begin[d] - tile.begin[d]) + index[d];
      visit(offset, run);
      int d = last - 1;
      while (d >= 0 && ++index[d] == part.extent(d)) index[d--] = 0;
      if (d < 0) return;
    }
  }
}

}  // namespace detail

/// Copies a box of a tile into a packed buffer; returns the end of what was written. In the
/// host's memory, as the two below.
template <class T, int Rank>
T* pack(T const* tile_data, box<Rank> const& tile, box<Rank> const& part, T* packed) {
  detail::each_run(tile, part, [&](std::int64_t offset, std::int64_t run) {
    std::memcpy(static_cast<void*>(packed), tile_data + offset, std::size_t(run) * sizeof(T));
    packed += run;
  });
  return packed;
}

template <class T, int Rank>
T const* unpack(T const* packed, T* tile_data, box<Rank> const& tile, box<Rank> const& part) {
  detail::each_run(tile, part, [&](std::int64_t offset, std::int64_t run) {
    std::memcpy(static_cast<void*>(tile_data + offset), packed, std::size_t(run) * sizeof(T));
    packed += run;
  });
  return packed;
}

/// As unpack, but adds: the adjoint of sending one block to several receivers.
template <class T, int Rank>
T const* unpack_add(T const* packed, T* tile_data, box<Rank> const& tile, box<Rank> const& part) {
  detail::each_run(tile, part, [&](std::int64_t offset, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i)
      tile_data[offset + i] =
          T(accumulate_t<T>(tile_data[offset + i]) + accumulate_t<T>(packed[i]));
    packed += run;
  });
  return packed;
}

namespace detail {

// Visits a box inside two tiles that hold it: visit(offset in one, offset in the other, length), by the
// longest runs that are contiguous in both.
template <int Rank, class Visit>
void each_common_run(box<Rank> const& one, box<Rank> const& other, box<Rank> const& part,
                     Visit visit) {
  if (part.size() == 0) return;
  if constexpr (Rank == 0) {
    visit(std::int64_t{0}, std::int64_t{0}, std::int64_t{1});
  } else {
    int last = Rank - 1;
    std::int64_t run = part.extent(last);
    while (last > 0 && part.extent(last) == one.extent(last) &&
           part.extent(last) == other.extent(last))
      run *= part.extent(--last);
    std::int64_t index[Rank] = {};
    for (;;) {
      std::int64_t here = 0, there = 0;
      for (int d = 0; d < Rank; ++d) {
        here = here * one.extent(d) + (part.begin[d] - one.begin[d]) + index[d];
        there = there * other.extent(d) + (part.begin[d] - other.begin[d]) + index[d];
      }
      visit(here, there, run);
      int d = last - 1;
      while (d >= 0 && ++index[d] == part.extent(d)) index[d--] = 0;
      if (d < 0) return;
    }
  }
}

}  // namespace detail

/// A box from one tile into another that has it as well. In the host's memory, as the next.
template <class T, int Rank>
void copy_box(T const* from, box<Rank> const& from_tile, T* to, box<Rank> const& to_tile,
              box<Rank> const& part) {
  detail::each_common_run(from_tile, to_tile, part, [&](auto there, auto here, auto run) {
    std::memcpy(static_cast<void*>(to + here), from + there, std::size_t(run) * sizeof(T));
  });
}

template <class T, int Rank>
void add_box(T const* from, box<Rank> const& from_tile, T* to, box<Rank> const& to_tile,
             box<Rank> const& part) {
  detail::each_common_run(from_tile, to_tile, part, [&](auto there, auto here, auto run) {
    for (std::int64_t i = 0; i < run; ++i)
      to[here + i] = T(accumulate_t<T>(to[here + i]) + accumulate_t<T>(from[there + i]));
  });
}

/// The same where the device of a context holds tile and buffer; a backend header defines it for
/// its device.
template <class Device>
struct box_copy;

template <>
struct box_copy<host> {
  template <class Context, class T, int Rank>
  static void pack(Context&, T const* tile_data, box<Rank> const& tile, box<Rank> const& part,
                   T* packed) {
    comm::pack(tile_data, tile, part, packed);
  }
  template <class Context, class T, int Rank>
  static void unpack(Context&, T const* packed, T* tile_data, box<Rank> const& tile,
                     box<Rank> const& part) {
    comm::unpack(packed, tile_data, tile, part);
  }
  template <class Context, class T, int Rank>
  static void unpack_add(Context&, T const* packed, T* tile_data, box<Rank> const& tile,
                         box<Rank> const& part) {
    comm::unpack_add(packed, tile_data, tile, part);
  }
};

}  // namespace dtm::comm
