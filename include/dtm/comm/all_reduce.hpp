#pragma once
// all_reduce<axes...>: partial<op> -> replicate on every named axis, in one reduction over their
// joint group. Volume: 2 (P-1)/P of the tile. 16-bit elements do not compile: widen first (law
// L11).

#include "dtm/comm/transition.hpp"

namespace dtm::comm {

template <class... Axis>
struct collective<all_reduce<Axis...>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X const& x, char const* name, call_site where) {
    using result_type = dtm::detail::unchecked_after_t<all_reduce<Axis...>, X>;
    using layout_type = typename X::layout_type;
    constexpr bool all_sum =
        (std::is_same_v<typename layout_type::template placement<Axis>, partial<sum>> && ...);
    constexpr bool all_max =
        (std::is_same_v<typename layout_type::template placement<Axis>, partial<max>> && ...);
    static_assert(all_sum || all_max,
                  "dtm collective: one all_reduce has one operation; reduce the sum and the "
                  "maximum separately");
    result_type result(ctx, x.global());
    auto& ranks = ctx.template along<Axis...>();
    auto messages = ranks.all_reduce(
        x.data(), result.data(), x.size(), all_sum ? reduction::sum : reduction::max,
        call{"all_reduce", name, layout_signature<X, result_type>(x), where});
    using T = typename X::element_type;
    return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                     nothing_to_finish{});
  }
};

}  // namespace dtm::comm
