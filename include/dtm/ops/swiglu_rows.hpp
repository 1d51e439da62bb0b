#pragma once
// swiglu_rows of backend/fused_rows.hpp and its adjoint on any device: as one where the device has them,
// else composed from single steps, a block of positions at a time. Local.

#include <cstdint>

#include "dtm/ops/composed_rows.hpp"

namespace dtm::local {

namespace detail {

/// Hidden channels are the wide ones: as many positions as have room for them.
template <class Device>
std::int64_t hidden_positions_together(std::int64_t channels, std::int64_t hidden,
                                       std::int64_t positions) {
  std::int64_t const most = positions_together<Device> * channels / std::max(channels, hidden);
  return std::max(std::min(most, positions), std::int64_t(1));
}

}  // namespace detail

template <class Context, class T>
void run_rows(Context& ctx, swiglu_rows<T> const& arg) {
  using Device = typename Context::device_type;
  if constexpr (fused_rows<Device>::available) {
    run_fused(ctx, arg);
  } else {
    auto const& in = arg.in;
    std::int64_t const positions = in.batch * in.positions, channels = in.channels,
                       hidden = arg.hidden,
                       most =
                           detail::hidden_positions_together<Device>(channels, hidden, positions);
    scratch<T> u(ctx.memory(), most * channels), h1(ctx.memory(), most * hidden),
        h2(ctx.memory(), most * hidden);
    detail::each_block(positions, most, [&](std::int64_t first, std::int64_t count) {
      layer_norm_forward(ctx, count, channels, arg.eps, in.x + first * channels, in.norm.gamma,
                         in.norm.beta, u.data(), in.statistics.mean + first,
                         in.statistics.rstd + first);
      detail::project(ctx, count, channels, hidden, u.data(), arg.fc1, h1.data());
      detail::project(ctx, count, channels, hidden, u.data(), arg.fc2, h2.data());
      for_each(ctx, count * hidden, kernels::swiglu<T>{h1.data(), h2.data(), h1.data()});
      detail::project(ctx, count, hidden, channels, h1.data(), arg.fc3, arg.y + first * channels);
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, swiglu_rows_backward<T> const& arg) {
  using Device = typename Context::device_type;
  if constexpr (fused_rows<Device>::available) {
    run_fused(ctx, arg);
  } else {
    auto const& in = arg.in;
    std::int64_t const positions = in.batch * in.positions, channels = in.channels,
                       hidden = arg.hidden,
                       most =
                           detail::hidden_positions_together<Device>(channels, hidden, positions);
    scratch<T> u(ctx.memory(), most * channels), du(ctx.memory(), most * channels),
        h1(ctx.memory(), most * hidden), h2(ctx.memory(), most * hidden),
        dh1(ctx.memory(), most * hidden), dh2(ctx.memory(), most * hidden);
    detail::each_block(positions, most, [&](std::int64_t first, std::int64_t count) {
      T const* const dy = arg.dy + first * channels;
      detail::norm_again(ctx, in, first, count, u.data());
      detail::project(ctx, count, channels, hidden, u.data(), arg.fc1, h1.data());
      detail::project(ctx, count, channels, hidden, u.data(), arg.fc2, h2.data());
      T* const da = dh1.data();  // element by element, what it becomes
      detail::project_backward(ctx, count, hidden, channels, dy, arg.fc3, da, false);
      for_each(ctx, count * hidden,
               kernels::swiglu_backward<T>{da, h1.data(), h2.data(), dh1.data(), dh2.data()});
      for_each(ctx, count * hidden, kernels::swiglu<T>{h1.data(), h2.data(), h1.data()});
      detail::add_projection_gradient(ctx, count, hidden, channels, dy, h1.data(),
                                      arg.fc3_gradient);
      detail::add_projection_gradient(ctx, count, channels, hidden, dh1.data(), u.data(),
                                      arg.fc1_gradient);
      detail::add_projection_gradient(ctx, count, channels, hidden, dh2.data(), u.data(),
                                      arg.fc2_gradient);
      detail::project_backward(ctx, count, channels, hidden, dh1.data(), arg.fc1, du.data(), false);
      detail::project_backward(ctx, count, channels, hidden, dh2.data(), arg.fc2, du.data(), true);
      layer_norm_backward(ctx, count, channels, du.data(), in.x + first * channels,
                          in.statistics.mean + first, in.statistics.rstd + first, in.norm.gamma,
                          arg.dx + first * channels, arg.norm_gradient.gamma,
                          arg.norm_gradient.beta);
    });
  }
}

}  // namespace dtm::local
