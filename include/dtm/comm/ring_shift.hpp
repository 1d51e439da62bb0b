#pragma once
// shift_along<axis>(ctx, x, distance): every rank gets the tile of the rank `distance` further along the axis, the
// step of a ring schedule (collective ring_shift<axis>). Same layout, rotated content: the caller knows whose tile it
// holds. The distance is the same on all ranks of the axis; a distance of 0 is a local copy.
//
// all_slice<axis, d> (no communication) and broadcast<axis> live here too: one message each, or none.

#include "dtm/comm/transition.hpp"

namespace dtm::comm {

template <class Axis>
struct collective<broadcast<Axis>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, char const* name, call_site where) {
    X result = x.clone();
    pending messages = ctx.template along<Axis>().broadcast(
        result.data(), result.size(), 0, call{"broadcast", name, layout_signature<X, X>(x), where});
    return in_flight<X, nothing_to_finish>(std::move(result), {}, {}, std::move(messages), {});
  }
};

/// A result that needed no message, with the interface of one that did.
template <class Result>
struct [[nodiscard]] at_once {
  Result result;
  Result wait() { return std::move(result); }
};

template <class Axis, int Dimension>
struct collective<all_slice<Axis, Dimension>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, char const*, call_site) {
    using result_type = dtm::detail::unchecked_after_t<all_slice<Axis, Dimension>, X>;
    result_type result(ctx, x.global());
    pack(x.data(), x.tile(), result.tile(), result.data());
    return at_once<result_type>{std::move(result)};
  }
};

}  // namespace dtm::comm

namespace dtm {

/// Starts a shift; wait() gives the tile of the rank `distance` further along the axis.
template <class Axis, class Context, any_tensor X>
auto shift_along(Context& ctx, X const& x, int distance, char const* name = "",
                 comm::call_site where = comm::call_site::current()) {
  detail::check_collective<ring_shift<Axis>, X>();
  X result(ctx, x.global());
  comm::group& ranks = ctx.template along<Axis>();
  int const size = ranks.size();
  int const step = (distance % size + size) % size;
  comm::pending messages =
      ranks.shift(x.data(), result.data(), x.size(), (ranks.rank() - step + size) % size, (ranks.rank() + step) % size,
                  comm::call{"ring_shift", name, comm::layout_signature<X, X>(x), where});
  return comm::in_flight<X, comm::nothing_to_finish>(std::move(result), {}, {}, std::move(messages), {});
}

}  // namespace dtm
