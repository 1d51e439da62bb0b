#pragma once
// The operations around the product of planes, gated_to_planes and gated_output of backend/fused_rows.hpp
// and their adjoints, on any device: as one where the device has them, else composed from single steps, a
// block of positions at a time. Local.

#include <cassert>
#include <cstdint>

#include "dtm/kernels/masked_gate.hpp"
#include "dtm/ops/composed_rows.hpp"

namespace dtm::local {

namespace detail {

/// Rows [first, first + count) of both halves of a weight [2 C, C]; the weight itself where those are all.
template <class T>
class halves_of_weight {
 public:
  template <class Context>
  halves_of_weight(Context& ctx, T const* weight, std::int64_t channels, std::int64_t first,
                   std::int64_t count)
      : weight_(weight), some_(ctx.memory(), count == channels ? 0 : 2 * count * channels) {
    if (count == channels) return;
    for (int half = 0; half < 2; ++half)
      ctx.memory().copy_within(some_.data() + half * count * channels,
                               weight + (half * channels + first) * channels,
                               std::size_t(count * channels) * sizeof(T));
  }
  T const* data() const { return some_.size() == 0 ? weight_ : some_.data(); }

 private:
  T const* weight_;
  scratch<T> some_;
};

/// to [count, columns, rows] = from [count, rows, columns], transposed.
template <class Context, class T>
void transpose_matrices(Context& ctx, std::int64_t count, std::int64_t rows, std::int64_t columns,
                        T const* from, T* to) {
  for_each(ctx, count * rows * columns, kernels::transpose_matrices<T>{from, rows, columns, to});
}

}  // namespace detail

template <class Context, class T>
void run_rows(Context& ctx, gated_to_planes<T> const& arg) {
  using Device = typename Context::device_type;
  if constexpr (fused_rows<Device>::available) {
    run_fused(ctx, arg);
  } else {
    assert(arg.a_elsewhere.first == nullptr && arg.b_elsewhere.first == nullptr);
    auto const& in = arg.in;
    detail::blocks_of_positions<Device> const blocks{in.batch, in.positions};
    std::int64_t const channels = in.channels, count = arg.count, most = blocks.most();
    detail::halves_of_weight<T> const p(ctx, arg.p_weight, channels, arg.first, count),
        g(ctx, arg.g_weight, channels, arg.first, count);
    scratch<T> u(ctx.memory(), most * channels), t(ctx.memory(), most * 2 * count),
        h(ctx.memory(), most * 2 * count);
    detail::planes_of_block<T> a(ctx.memory(), blocks, count), b(ctx.memory(), blocks, count);
    blocks.each(count, [&](detail::block_of_positions const& block) {
      std::int64_t const length = block.length();
      layer_norm_forward(ctx, length, channels, arg.eps, in.x + block.first * channels,
                         in.norm.gamma, in.norm.beta, u.data(), in.statistics.mean + block.first,
                         in.statistics.rstd + block.first);
      detail::project(ctx, length, channels, 2 * count, u.data(), p.data(), t.data());
      detail::project(ctx, length, channels, 2 * count, u.data(), g.data(), h.data());
      for_each(
          ctx, length * 2 * count,
          kernels::masked_gate_to_planes<T>{t.data(), h.data(), arg.mask + block.first, block.each,
                                            count, a.place(block, arg.a), b.place(block, arg.b)});
      a.put(ctx, block, arg.a);
      b.put(ctx, block, arg.b);
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, gated_to_planes_backward<T> const& arg) {
  using Device = typename Context::device_type;
  if constexpr (fused_rows<Device>::available) {
    run_fused(ctx, arg);
  } else {
    auto const& in = arg.in;
    detail::blocks_of_positions<Device> const blocks{in.batch, in.positions};
    std::int64_t const channels = in.channels, most = blocks.most();
    scratch<T> u(ctx.memory(), most * channels), p(ctx.memory(), most * 2 * channels),
        h(ctx.memory(), most * 2 * channels), du(ctx.memory(), most * channels);
    detail::planes_of_block<T> da(ctx.memory(), blocks, channels),
        db(ctx.memory(), blocks, channels);
    blocks.each(channels, [&](detail::block_of_positions const& block) {
      std::int64_t const length = block.length(), at = block.first * channels;
      detail::norm_again(ctx, in, block.first, length, u.data());
      detail::project(ctx, length, channels, 2 * channels, u.data(), arg.p_weight, p.data());
      detail::project(ctx, length, channels, 2 * channels, u.data(), arg.g_weight, h.data());
      for_each(ctx, length * 2 * channels,
               kernels::masked_gate_from_planes_backward<T>{
                   da.take(ctx, block, arg.da), db.take(ctx, block, arg.db), p.data(), h.data(),
                   arg.mask + block.first, block.each, channels, p.data(), h.data()});
      detail::add_projection_gradient(ctx, length, channels, 2 * channels, p.data(), u.data(),
                                      arg.p_gradient);
      detail::add_projection_gradient(ctx, length, channels, 2 * channels, h.data(), u.data(),
                                      arg.g_gradient);
      ctx.memory().copy_within(du.data(), arg.du + at, std::size_t(length * channels) * sizeof(T));
      detail::project_backward(ctx, length, channels, 2 * channels, p.data(), arg.p_weight,
                               du.data(), true);
      detail::project_backward(ctx, length, channels, 2 * channels, h.data(), arg.g_weight,
                               du.data(), true);
      layer_norm_backward(ctx, length, channels, du.data(), in.x + at,
                          in.statistics.mean + block.first, in.statistics.rstd + block.first,
                          in.norm.gamma, arg.dx + at, arg.norm_gradient.gamma,
                          arg.norm_gradient.beta);
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, gated_output<T> const& arg) {
  using Device = typename Context::device_type;
  if constexpr (fused_rows<Device>::available) {
    run_fused(ctx, arg);
  } else {
    using A = accumulate_t<T>;
    assert(arg.elsewhere.first == nullptr);
    auto const& in = arg.in;
    bool const kept = arg.o != nullptr;
    detail::blocks_of_positions<Device> const blocks{in.batch, in.positions};
    std::int64_t const channels = in.channels, most = blocks.most();
    detail::planes_of_block<T> planes(ctx.memory(), blocks, channels);
    scratch<T> o(ctx.memory(), kept ? 0 : most * channels), normal(ctx.memory(), most * channels),
        e(ctx.memory(), most * channels);
    scratch<A> statistics(ctx.memory(), kept ? 0 : 2 * most);
    blocks.each(channels, [&](detail::block_of_positions const& block) {
      std::int64_t const length = block.length();
      T* const rows = kept ? arg.o + block.first * channels : o.data();
      T* const y = arg.y + block.first * channels;
      detail::transpose_matrices(ctx, block.samples, channels, block.each,
                                 planes.take(ctx, block, arg.planes), rows);
      layer_norm_forward(ctx, length, channels, arg.eps, rows, arg.norm.gamma, arg.norm.beta,
                         normal.data(),
                         kept ? arg.statistics.mean + block.first : statistics.data(),
                         kept ? arg.statistics.rstd + block.first : statistics.data() + most);
      detail::project(ctx, length, channels, channels, normal.data(), arg.o_weight, y);
      detail::norm_again(ctx, in, block.first, length, normal.data());
      detail::project(ctx, length, channels, channels, normal.data(), arg.g_weight, e.data());
      for_each(ctx, length * channels, kernels::gate<T>{y, e.data(), y});
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, gated_output_backward<T> const& arg) {
  using Device = typename Context::device_type;
  if constexpr (fused_rows<Device>::available) {
    run_fused(ctx, arg);
  } else {
    auto const& in = arg.in;
    normalised_rows<T> const out{arg.o,       in.batch, in.positions,
                                 in.channels, arg.norm, arg.statistics};
    detail::blocks_of_positions<Device> const blocks{in.batch, in.positions};
    std::int64_t const channels = in.channels, most = blocks.most();
    detail::planes_of_block<T> planes(ctx.memory(), blocks, channels);
    scratch<T> u(ctx.memory(), most * channels), w(ctx.memory(), most * channels),
        y(ctx.memory(), most * channels), e(ctx.memory(), most * channels);
    blocks.each(channels, [&](detail::block_of_positions const& block) {
      std::int64_t const length = block.length(), at = block.first * channels;
      detail::norm_again(ctx, in, block.first, length, u.data());
      detail::norm_again(ctx, out, block.first, length, w.data());
      detail::project(ctx, length, channels, channels, w.data(), arg.o_weight, y.data());
      detail::project(ctx, length, channels, channels, u.data(), arg.g_weight, e.data());
      for_each(ctx, length * channels,
               kernels::gate_backward<T>{arg.dy + at, y.data(), e.data(), y.data(), e.data()});
      detail::add_projection_gradient(ctx, length, channels, channels, e.data(), u.data(),
                                      arg.g_gradient);
      detail::add_projection_gradient(ctx, length, channels, channels, y.data(), w.data(),
                                      arg.o_gradient);
      detail::project_backward(ctx, length, channels, channels, e.data(), arg.g_weight, arg.du + at,
                               false);
      T* const dw = u.data();
      T* const d_o = w.data();
      detail::project_backward(ctx, length, channels, channels, y.data(), arg.o_weight, dw, false);
      layer_norm_backward(ctx, length, channels, dw, arg.o + at, arg.statistics.mean + block.first,
                          arg.statistics.rstd + block.first, arg.norm.gamma, d_o,
                          arg.norm_gradient.gamma, arg.norm_gradient.beta);
      detail::transpose_matrices(ctx, block.samples, block.each, channels, d_o,
                                 planes.place(block, arg.d_planes));
      planes.put(ctx, block, arg.d_planes);
    });
  }
}

}  // namespace dtm::local
