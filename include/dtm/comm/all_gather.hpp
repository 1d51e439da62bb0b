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

  template <class Context, class Result, class T>
  void operator()(Context& ctx, Result& result, T const* received) const {
    peers<Mesh> const group{here, mask};
    for (int peer = 0; peer < group.count(); ++peer) {
      int there[Mesh::rank];
      group.coordinates(peer, there);
      auto const part = tile_of<Source>(result.global(), here.sizes, there);
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
    scratch<T> received(ctx.memory(), x.size() * ctx.template size<Axis>());
    call const what{"all_gather", name, layout_signature<X, result_type>(x), where};
    auto messages =
        ctx.template along<Axis>().all_gather(x.data(), received.data(), x.size(), what);
    using finish = detail::unpack_gathered<typename X::layout_type, mesh_type>;
    return in_flight(ctx, std::move(result), scratch<T>(), std::move(received),
                     std::move(messages),
                     finish{ctx.where(), dtm::detail::axis_mask<mesh_type, Axis>});
  }
};

}  // namespace dtm::comm
