#pragma once
// Copies between a box of a tile and a packed buffer, on any device: comm::pack, unpack and
// unpack_add as local operations. The buffers do not overlap.

#include <cstdint>

#include "dtm/backend/local.hpp"
#include "dtm/kernels/box.hpp"

namespace dtm::local {

namespace detail {

// run(walk, pieces of the widest kind that fits the box and both pointers)
template <int Bytes = 16, class T, int Rank, class Run>
void in_widest_pieces(kernels::box_walk<Rank> const& walk, T const* one, T const* other,
                      Run const& run) {
  if constexpr (Bytes > int(sizeof(T))) {
    constexpr std::int64_t count = Bytes / std::int64_t(sizeof(T));
    if (!walk.divides_by(count) || !kernels::are_aligned<int(count)>(one, other))
      return in_widest_pieces<Bytes / 2>(walk, one, other, run);
    run(walk.in_pieces_of(count), static_cast<kernels::piece<Bytes>*>(nullptr));
  } else {
    run(walk, static_cast<kernels::piece<int(sizeof(T))>*>(nullptr));
  }
}

}  // namespace detail

/// The box `part` of a tile, row-major, to packed[0, part.size()).
template <class Context, class T, int Rank>
void pack_box(Context& ctx, T const* tile_data, box<Rank> const& tile, box<Rank> const& part,
              T* packed) {
  if (part.size() == 0) return;
  auto const copy = [&]<class Piece>(kernels::box_walk<Rank> const& walk, Piece*) {
    for_each(ctx, walk.size(),
             kernels::pack_box<Piece, Rank>{walk, reinterpret_cast<Piece const*>(tile_data),
                                            reinterpret_cast<Piece*>(packed)});
  };
  detail::in_widest_pieces<16, T, Rank>(kernels::box_walk<Rank>::of(tile, part), tile_data, packed,
                                        copy);
}

template <class Context, class T, int Rank>
void unpack_box(Context& ctx, T const* packed, T* tile_data, box<Rank> const& tile,
                box<Rank> const& part) {
  if (part.size() == 0) return;
  auto const copy = [&]<class Piece>(kernels::box_walk<Rank> const& walk, Piece*) {
    for_each(ctx, walk.size(),
             kernels::unpack_box<Piece, Rank>{walk, reinterpret_cast<Piece const*>(packed),
                                              reinterpret_cast<Piece*>(tile_data)});
  };
  detail::in_widest_pieces<16, T, Rank>(kernels::box_walk<Rank>::of(tile, part), tile_data, packed,
                                        copy);
}

/// As unpack_box, but adds: the adjoint of sending one block to several receivers.
template <class Context, class T, int Rank>
void unpack_box_add(Context& ctx, T const* packed, T* tile_data, box<Rank> const& tile,
                    box<Rank> const& part) {
  if (part.size() == 0) return;
  auto const walk = kernels::box_walk<Rank>::of(tile, part);
  for_each(ctx, walk.size(), kernels::unpack_box_add<T, Rank>{walk, packed, tile_data});
}

}  // namespace dtm::local
