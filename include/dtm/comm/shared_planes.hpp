#pragma once
// An all_to_all of channels whose one side is never stored: where ranks share memory, what makes the
// planes of a rank stores them into the tiles of the ranks that get them, and what reads them reads the
// tiles of the ranks that have them. On the wire of signatures and ledger it is the collective that it
// stands for.
//
//   tile [b, C, i, j]  <->  planes [b, planes<C>, N, N]

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "dtm/comm/opened_memory.hpp"
#include "dtm/comm/transition.hpp"

namespace dtm::comm {

/// Whether the ranks of a group can. At check level 3, where all ranks of the world ask each other whether
/// an operand is finite, all can or none does.
template <class X, class Context, class Group>
bool opens_planes(Context& ctx, Group& ranks) {
  if constexpr (requires { detail::require_tiles<X>(ranks); })
    return ranks.shares_memory() &&
           (ctx.world().level() < check_level::data || ctx.along_all().shares_memory());
  else
    return false;
}

/// Where the planes of this rank's part of the pairs are: one pointer for each batch and channel, to its
/// first element; `columns` lie together, and the next row is `row_step` further on.
template <class T>
struct planes_elsewhere {
  std::vector<T*> first;
  std::int64_t columns = 0, row_step = 0;
};

namespace detail {

/// The all_to_all that brings Tile to Planes; where the other way is meant, its plan runs backwards.
template <class Tile, class Planes>
auto plan_of_planes(site<typename Tile::mesh_type> const& here, unsigned mask,
                    global_extents<4> const& tile, global_extents<4> const& planes) {
  return plan_exchange<typename Tile::layout_type, typename Planes::layout_type>(
      here, mask, tile, planes, [](int const*, int const*) { return true; });
}

template <class Tile, class Planes, class Opened>
auto planes_in(site<typename Tile::mesh_type> const& here, unsigned mask,
               global_extents<4> const& tile_extents, global_extents<4> const& extents,
               std::vector<box<4>> const& parts, Opened const& opened) {
  using T = typename Tile::element_type;
  auto const mine = tile_of<typename Tile::layout_type>(tile_extents, here.sizes, here.coordinates);
  std::int64_t const channels = mine.extent(1);
  planes_elsewhere<T> result;
  result.first.resize(std::size_t(mine.extent(0) * channels));
  result.columns = mine.extent(3);
  result.row_step = extents[3];
  for (std::size_t peer = 0; peer < parts.size(); ++peer) {
    int there[Tile::mesh_type::rank];
    peers<typename Tile::mesh_type>{here, mask}.coordinates(int(peer), there);
    auto const theirs = tile_of<typename Planes::layout_type>(extents, here.sizes, there);
    auto const& part = parts[peer];
    if (part.size() == 0) continue;
    T* const start = static_cast<T*>(opened.address(int(peer)));
    for (std::int64_t b = part.begin[0]; b < part.end[0]; ++b)
      for (std::int64_t c = part.begin[1]; c < part.end[1]; ++c)
        result.first[std::size_t((b - mine.begin[0]) * channels + c - mine.begin[1])] =
            start +
            (((b - theirs.begin[0]) * theirs.extent(1) + c - theirs.begin[1]) * theirs.extent(2) +
             part.begin[2]) *
                theirs.extent(3) +
            part.begin[3];
  }
  return result;
}

}  // namespace detail

namespace detail {

/// A tile that peers write. Unless it is taken it is given away: a peer may still be writing.
template <class Tensor>
class written_by_peers {
 public:
  template <class Context, class Extents>
  written_by_peers(Context& ctx, Extents const& extents)
      : storage_(ctx.memory()), tile_(std::make_unique<Tensor>(ctx, extents)) {}
  written_by_peers(written_by_peers const&) = delete;
  written_by_peers& operator=(written_by_peers const&) = delete;
  ~written_by_peers() {
    if (!tile_) return;
    storage_.keep(storage_.owner);
    keep_until_exit(std::shared_ptr<void>(tile_.release(), [](void*) {}));
  }
  Tensor& tile() { return *tile_; }
  Tensor take() {
    auto const mine = std::move(tile_);
    return std::move(*mine);
  }

 private:
  memory& storage_;
  std::unique_ptr<Tensor> tile_;
};

}  // namespace detail

/// Planes that this rank and its peers store into.
template <class Tile, class Planes>
class planes_stored_by_peers {
 public:
  /// Stands for all_to_all from a Tile of these extents; waits until all have opened theirs.
  template <class Context, class Group>
  planes_stored_by_peers(Context& ctx, Group& ranks, unsigned mask,
                         global_extents<4> const& extents, char const* name, call_site where)
      : name_(name),
        where_(where),
        result_(ctx, extents),
        plan_(detail::plan_of_planes<Tile, Planes>(ctx.where(), mask, extents,
                                                   result_.tile().global())),
        opened_(ranks.open_to_peers(
            result_.tile().data(), plan_.send_counts, plan_.receive_counts,
            call{"all_to_all", name, layout_signature<Tile, Planes>(extents), where})),
        to_(detail::planes_in<Tile, Planes>(ctx.where(), mask, extents, result_.tile().global(),
                                            plan_.send, opened_)) {}

  planes_elsewhere<typename Tile::element_type> const& to() const { return to_; }
  /// This rank has stored; the planes, when all have.
  template <class Context>
  Planes close(Context& ctx) {
    opened_.close();
    require_finite(ctx, result_.tile(), "collective", name_, where_);
    return result_.take();
  }

 private:
  char const* name_;
  call_site where_;
  detail::written_by_peers<Planes> result_;
  exchange_plan<4> plan_;
  typename opened_by<typename Tile::device_type>::type opened_;
  planes_elsewhere<typename Tile::element_type> to_;
};

/// Planes that are read where they lie: stands for all_to_all back to a Tile. `planes` stay until close.
template <class Tile, class Planes>
class planes_read_from_peers {
 public:
  template <class Context, class Group>
  planes_read_from_peers(Context& ctx, Group& ranks, unsigned mask, Planes const& planes,
                         global_extents<4> const& extents, char const* name, call_site where)
      : plan_(detail::plan_of_planes<Tile, Planes>(ctx.where(), mask, extents, planes.global())),
        opened_(ranks.open_to_peers(
            planes.data(), plan_.receive_counts, plan_.send_counts,
            call{"all_to_all", name, layout_signature<Planes, Tile>(planes.global()), where})),
        from_(detail::planes_in<Tile, Planes>(ctx.where(), mask, extents, planes.global(),
                                              plan_.send, opened_)) {}

  planes_elsewhere<typename Tile::element_type> const& from() const { return from_; }
  /// This rank has read; returns when all have.
  void close() { opened_.close(); }

 private:
  exchange_plan<4> plan_;
  typename opened_by<typename Tile::device_type>::type opened_;
  planes_elsewhere<typename Tile::element_type> from_;
};

}  // namespace dtm::comm
