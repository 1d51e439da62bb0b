#pragma once
// The operations of backend/fused_attention.hpp on devices that launch kernels over blocks
// (kernels/attention.hpp, attention_backward.hpp). Heads of up to 64 channels: a tile's sums are in
// registers.

#include <cstdint>
#include <string>
#include <type_traits>

#include "dtm/backend/device/for_each.hpp"
#include "dtm/backend/fused_attention.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/attention.hpp"
#include "dtm/kernels/attention_backward.hpp"

namespace dtm::local {

namespace detail {

/// visit(the width that kernels are made for, as a type).
template <class Visit>
void with_head_width(std::int64_t width, Visit const& visit) {
  if (width <= 16) return visit(std::integral_constant<int, 16>{});
  if (width <= 32) return visit(std::integral_constant<int, 32>{});
  if (width <= 64) return visit(std::integral_constant<int, 64>{});
  throw argument_error("dtm attention: a head has " + std::to_string(width) +
                       " channels; kernels of a device have up to 64 of a head in registers. Take "
                       "more heads of fewer channels, or the host");
}

template <class T, class... P>
kernels::attention_alignment alignment_of(attention_input<T> const& in, P const*... further) {
  return {in.shape.width % 8 == 0 && kernels::are_aligned<int(16 / sizeof(T))>(in.q, in.k, in.v) &&
              (kernels::are_aligned<int(16 / sizeof(P))>(further) && ...),
          in.shape.keys % 2 == 0 && kernels::are_aligned<2>(in.bias)};
}

inline bool is_empty(attention_shape const& s) {
  return s.batch * s.rows * s.queries * s.keys * s.heads * s.width == 0;
}

}  // namespace detail

template <device_like Device>
struct fused_attention<Device> {
  static constexpr bool available = true;

  template <class Context, class T, class Result>
  static void run(Context& ctx, attention_rows<T, Result> const& arg) {
    if (detail::is_empty(arg.in.shape)) return;
    detail::with_head_width(arg.in.shape.width, [&]<int Width>(std::integral_constant<int, Width>) {
      kernels::attention_forward<T, Result, Width> const kernel{
          arg, detail::alignment_of(arg.in, arg.o)};
      ctx.launch(kernel.blocks(), kernel);
    });
  }

  template <class Context, class T, class Result>
  static void run(Context& ctx, attention_rows_backward<T, Result> const& arg) {
    auto const& s = arg.in.shape;
    if (detail::is_empty(s)) return;
    using A = accumulate_t<T>;
    std::int64_t const softmaxes = s.batch * s.rows * s.heads * s.queries;
    scratch<A> share(ctx.memory(), softmaxes), dl(ctx.memory(), softmaxes);
    for_each(ctx, softmaxes,
             kernels::attention_query_constants<T>{s, arg.o, arg.d_o, arg.statistics.sum,
                                                   share.data(), dl.data()});
    kernels::attention_adjoint<T> const of{
        arg.in,       arg.statistics.max,
        share.data(), dl.data(),
        arg.d_o,      detail::alignment_of(arg.in, arg.d_o, arg.dq, arg.dk, arg.dv)};
    auto const launch = [&](auto const& kernel) { ctx.launch(kernel.blocks(), kernel); };
    detail::with_head_width(s.width, [&]<int Width>(std::integral_constant<int, Width>) {
      launch(kernels::attention_backward_queries<T, Result, Width>{of, arg.dq, arg.add});
      launch(kernels::attention_backward_keys<T, Result, Width>{of, arg.dk, arg.dv, arg.add});
      launch(kernels::attention_backward_bias<T, Width>{of, arg.dbias});
    });
  }
};

}  // namespace dtm::local
