#pragma once
// all_gather<axis>: shard<d> -> replicate. Volume: P-1 tiles per rank.

#include "dtm/comm/transition.hpp"

namespace dtm::comm {

namespace detail {

// Blocks arrive in rank order, each a tile of the source layout.
template <class Source, class Mesh>
struct unpack_gathered {
  site<Mesh> here;
  unsigned mask;
  bool in_place = false;  // the result is there

  box<Source::rank> part(global_extents<Source::rank> const& global, int peer) const {
    int there[Mesh::rank];
    peers<Mesh>{here, mask}.coordinates(peer, there);
    return tile_of<Source>(global, here.sizes, there);
  }

  template <class Context, class Result, class T>
  void operator()(Context& ctx, Result& result, T const* received) const {
    if (in_place) return;
    peers<Mesh> const group{here, mask};
    for (int peer = 0; peer < group.count(); ++peer) {
      auto const part = this->part(result.global(), peer);
      box_copy<typename Result::device_type>::unpack(ctx, received, result.data(), result.tile(),
                                                     part);
      received += part.size();
    }
  }
};

}  // namespace detail

template <class Axis>
struct collective<all_gather<Axis>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, char const* name, call_site where) {
    using result_type = dtm::detail::unchecked_after_t<all_gather<Axis>, X>;
    using T = typename X::element_type;
    using mesh_type = typename X::mesh_type;
    result_type result(ctx, x.global());
    using finish = detail::unpack_gathered<typename X::layout_type, mesh_type>;
    constexpr unsigned mask = dtm::detail::axis_mask<mesh_type, Axis>;
    call const what{"all_gather", name, layout_signature<X, result_type>(x), where};
    if constexpr (requires { detail::require_tiles<X>(ctx.template along<Axis>()); })
      if (ctx.template along<Axis>().shares_memory()) {
        finish const place{ctx.where(), mask};
        detail::box_reader<T, X::rank, false> reader{result.data(), result.tile(), false, {}};
        for (int peer = 0; peer < ctx.template size<Axis>(); ++peer) {
          auto const part = place.part(x.global(), peer);
          reader.of_peers.push_back({part, part});
        }
        auto messages = ctx.template along<Axis>().all_gather_in_place(x.data(), x.size(), what,
                                                                       std::move(reader));
        return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                         finish{ctx.where(), mask, true});
      }
    scratch<T> received(ctx.memory(), x.size() * ctx.template size<Axis>());
    auto messages =
        ctx.template along<Axis>().all_gather(x.data(), received.data(), x.size(), what);
    return in_flight(ctx, std::move(result), scratch<T>(), std::move(received), std::move(messages),
                     finish{ctx.where(), mask});
  }
};

}  // namespace dtm::comm
