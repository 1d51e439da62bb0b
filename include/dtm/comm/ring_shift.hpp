#pragma once
// ring_shift<axis>: one message each way. all_slice<axis, d> (no communication) and
// broadcast<axis> live here too.

#include "dtm/comm/transition.hpp"

namespace dtm::comm {

template <class Axis>
struct collective<ring_shift<Axis>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, int distance, char const* name, call_site where) {
    X result(ctx, x.global());
    auto& ranks = ctx.template along<Axis>();
    int const size = ranks.size();
    int const step = (distance % size + size) % size;
    auto messages = ranks.shift(
        x.data(), result.data(), x.size(), (ranks.rank() - step + size) % size,
        (ranks.rank() + step) % size, call{"ring_shift", name, layout_signature<X, X>(x), where});
    using T = typename X::element_type;
    return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                     nothing_to_finish{});
  }
};

template <class Axis>
struct collective<broadcast<Axis>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, char const* name, call_site where) {
    X result = x.clone();
    auto messages = ctx.template along<Axis>().broadcast(
        result.data(), result.size(), 0, call{"broadcast", name, layout_signature<X, X>(x), where});
    using T = typename X::element_type;
    return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                     nothing_to_finish{});
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
    box_copy<typename X::device_type>::pack(ctx, x.data(), x.tile(), result.tile(), result.data());
    return at_once<result_type>{std::move(result)};
  }
};

}  // namespace dtm::comm
