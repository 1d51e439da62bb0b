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
    group& ranks = ctx.template along<Axis...>();
    pending messages = ranks.all_reduce(
        x.data(), result.data(), x.size(), all_sum ? reduction::sum : reduction::max,
        call{"all_reduce", name, layout_signature<X, result_type>(x), where});
    return in_flight<result_type, nothing_to_finish>(std::move(result), {}, {}, std::move(messages),
                                                     {});
  }
};

}  // namespace dtm::comm
