#pragma once
// reduce_scatter<axis, d>: partial<sum> -> shard<d>. Volume: P-1 result tiles per rank. 16-bit
// elements do not compile: widen first (law L11).

#include "dtm/comm/transition.hpp"

namespace dtm::comm {

template <class Axis, int Dimension>
struct collective<reduce_scatter<Axis, Dimension>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, char const* name, call_site where) {
    using result_type = dtm::detail::unchecked_after_t<reduce_scatter<Axis, Dimension>, X>;
    using T = typename X::element_type;
    using mesh_type = typename X::mesh_type;
    result_type result(ctx, x.global());
    call const what{"reduce_scatter", name, layout_signature<X, result_type>(x), where};
    if constexpr (requires { detail::require_tiles<X>(ctx.template along<Axis>()); })
      if (ctx.template along<Axis>().shares_memory()) {
        detail::box_reader<T, X::rank, true> reader{result.data(), result.tile(), true, {}};
        reader.of_peers.assign(std::size_t(ctx.template size<Axis>()), {x.tile(), result.tile()});
        auto messages = ctx.template along<Axis>().reduce_scatter_in_place(x.data(), result.size(),
                                                                           what, std::move(reader));
        return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                         nothing_to_finish{});
      }
    scratch<T> sent(ctx.memory(), x.size());
    peers<mesh_type> const group{ctx.where(), dtm::detail::axis_mask<mesh_type, Axis>};
    T* end = sent.data();
    for (int peer = 0; peer < group.count(); ++peer) {
      int there[mesh_type::rank];
      group.coordinates(peer, there);
      auto const part =
          tile_of<typename result_type::layout_type>(x.global(), ctx.where().sizes, there);
      box_copy<typename X::device_type>::pack(ctx, x.data(), x.tile(), part, end);
      end += part.size();
    }
    auto messages = ctx.template along<Axis>().reduce_scatter(sent.data(), result.data(),
                                                              result.size(), reduction::sum, what);
    return in_flight(ctx, std::move(result), std::move(sent), scratch<T>(), std::move(messages),
                     nothing_to_finish{});
  }
};

}  // namespace dtm::comm
