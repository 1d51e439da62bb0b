#pragma once
// The operations of backend/attended_rows.hpp on any device: as one where the device has them, else
// composed from single steps, a block of rows at a time. Local.

#include <cmath>
#include <cstdint>

#include "dtm/backend/attended_rows.hpp"
#include "dtm/ops/composed_rows.hpp"

namespace dtm::local {

namespace detail {

template <class Context>
inline constexpr bool attends_rows = fused_attended_rows<typename Context::device_type>::available;

/// Rows of so many positions.
template <class Device>
std::int64_t rows_together(attention_shape const& s) {
  std::int64_t const longer = s.queries > s.keys ? s.queries : s.keys,
                     each = positions_together<Device> / (longer > 0 ? longer : 1);
  return each < 1 ? 1 : each < s.rows ? each : s.rows;
}

/// A block of rows: of all samples it begins with row `first`.
struct block_of_rows {
  std::int64_t sample, rows, first;
  std::int64_t position(attention_shape const& s) const { return first * s.queries; }
  std::int64_t positions(attention_shape const& s) const { return rows * s.queries; }
  std::int64_t key(attention_shape const& s) const { return first * s.keys; }
  std::int64_t keys(attention_shape const& s) const { return rows * s.keys; }
};

/// f(block) for every block of rows.
template <class Device, class F>
void each_block_of_rows(attention_shape const& s, F const& f) {
  std::int64_t const each = rows_together<Device>(s);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t row = 0; row < s.rows; row += each)
      f(block_of_rows{b, each < s.rows - row ? each : s.rows - row, b * s.rows + row});
}

/// Projections of the rows of a block.
template <class T, class Device>
struct projected_rows {
  bool among_themselves;
  scratch<T> u, u_of_keys, q, k, v, g;
  projected_rows(memory& storage, attention_shape const& s, std::int64_t channels, bool themselves)
      : among_themselves(themselves),
        u(storage, rows_together<Device>(s) * s.queries * channels),
        u_of_keys(storage, themselves ? 0 : rows_together<Device>(s) * s.keys * channels),
        q(storage, rows_together<Device>(s) * s.queries * s.heads * s.width),
        k(storage, rows_together<Device>(s) * s.keys * s.heads * s.width),
        v(storage, rows_together<Device>(s) * s.keys * s.heads * s.width),
        g(storage, rows_together<Device>(s) * s.queries * s.heads * s.width) {}
  T const* u_keys() const { return among_themselves ? u.data() : u_of_keys.data(); }

  template <class Context, class Operation>
  void fill(Context& ctx, Operation const& arg, block_of_rows const& block) {
    attention_shape const& s = arg.shape;
    std::int64_t const channels = arg.in.channels, hidden = s.heads * s.width,
                       positions = block.positions(s), keys = block.keys(s);
    norm_again(ctx, arg.in, block.position(s), positions, u.data());
    if (!among_themselves) norm_again(ctx, arg.keys, block.key(s), keys, u_of_keys.data());
    project(ctx, positions, channels, hidden, u.data(), arg.weights.q, q.data());
    project(ctx, keys, channels, hidden, u_keys(), arg.weights.k, k.data());
    project(ctx, keys, channels, hidden, u_keys(), arg.weights.v, v.data());
    project(ctx, positions, channels, hidden, u.data(), arg.weights.g, g.data());
  }

  template <class Operation>
  attention_input<T> input(Operation const& arg, block_of_rows const& block) const {
    attention_shape const& s = arg.shape;
    return {{1, block.rows, s.queries, s.keys, s.heads, s.width},
            accumulate_t<T>(1) / std::sqrt(accumulate_t<T>(s.width)),
            q.data(),
            k.data(),
            v.data(),
            arg.bias + block.sample * s.heads * s.queries * s.keys,
            arg.mask + block.key(s)};
  }
};

}  // namespace detail

template <class Context, class T>
void run_rows(Context& ctx, norm_to_planes<T> const& arg) {
  if constexpr (detail::attends_rows<Context>) {
    run_attended(ctx, arg);
  } else {
    auto const& in = arg.in;
    detail::blocks_of_positions<typename Context::device_type> const blocks{in.batch, in.positions};
    scratch<T> u(ctx.memory(), blocks.most() * in.channels);
    detail::planes_of_block<T> planes(ctx.memory(), blocks, arg.count);
    blocks.each(arg.count, [&](detail::block_of_positions const& block) {
      layer_norm_forward(ctx, block.length(), in.channels, arg.eps,
                         in.x + block.first * in.channels, in.norm.gamma, in.norm.beta, u.data(),
                         in.statistics.mean + block.first, in.statistics.rstd + block.first);
      gemm_shape shape{1, arg.count, block.each, in.channels};
      shape.right_transposed = true;
      for (std::int64_t s = 0; s < block.samples; ++s)
        gemm(ctx, shape, arg.weight, u.data() + s * block.each * in.channels,
             planes.place(block, arg.planes) + s * arg.count * block.each);
      planes.put(ctx, block, arg.planes);
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, norm_to_planes_backward<T> const& arg) {
  if constexpr (detail::attends_rows<Context>) {
    run_attended(ctx, arg);
  } else {
    using A = accumulate_t<T>;
    auto const& in = arg.in;
    detail::blocks_of_positions<typename Context::device_type> const blocks{in.batch, in.positions};
    detail::planes_of_block<A> cotangents(ctx.memory(), blocks, arg.count);
    scratch<T> planes(ctx.memory(), blocks.most() * arg.count),
        u(ctx.memory(), blocks.most() * in.channels),
        total(ctx.memory(), blocks.most() * in.channels);
    blocks.each(arg.count, [&](detail::block_of_positions const& block) {
      std::int64_t const length = block.length(), at = block.first * in.channels;
      for_each(ctx, length * arg.count,
               kernels::convert<A, T>{cotangents.take(ctx, block, arg.d_planes), planes.data()});
      for_each(ctx, length * in.channels, kernels::convert<A, T>{arg.du + at, total.data()});
      detail::norm_again(ctx, in, block.first, length, u.data());
      gemm_shape adjoint{1, block.each, in.channels, arg.count};
      adjoint.left_transposed = true;
      adjoint.accumulate = true;
      gemm_shape sum{1, arg.count, in.channels, block.each};
      sum.accumulate = true;
      for (std::int64_t s = 0; s < block.samples; ++s) {
        T const* const of_sample = planes.data() + s * arg.count * block.each;
        std::int64_t const first = s * block.each * in.channels;
        gemm(ctx, adjoint, of_sample, arg.weight, total.data() + first);
        gemm(ctx, sum, of_sample, static_cast<T const*>(u.data() + first), arg.gradient);
      }
      layer_norm_backward(ctx, length, in.channels, total.data(), in.x + at,
                          in.statistics.mean + block.first, in.statistics.rstd + block.first,
                          in.norm.gamma, arg.dx + at, arg.norm_gradient.gamma,
                          arg.norm_gradient.beta);
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, attended_rows<T> const& arg) {
  if constexpr (detail::attends_rows<Context>) {
    run_attended(ctx, arg);
  } else {
    using A = accumulate_t<T>;
    using Device = typename Context::device_type;
    attention_shape const& s = arg.shape;
    std::int64_t const channels = arg.in.channels, hidden = s.heads * s.width,
                       most = detail::rows_together<Device>(s) * s.queries;
    bool const kept = arg.statistics.max != nullptr;
    detail::projected_rows<T, Device> made(ctx.memory(), s, channels, arg.among_themselves());
    scratch<T> o(ctx.memory(), arg.o == nullptr ? most * hidden : 0);
    scratch<A> statistics(ctx.memory(), kept ? 0 : 2 * most * s.heads);
    detail::each_block_of_rows<Device>(s, [&](detail::block_of_rows const& block) {
      std::int64_t const positions = block.positions(s), first = block.position(s);
      made.fill(ctx, arg, block);
      T* const out = arg.o != nullptr ? arg.o + first * hidden : o.data();
      run_attention(
          ctx, attention_rows<T>{made.input(arg, block),
                                 out,
                                 {kept ? arg.statistics.max + first * s.heads : statistics.data(),
                                  kept ? arg.statistics.sum + first * s.heads
                                       : statistics.data() + most * s.heads},
                                 false});
      for_each(ctx, positions * hidden, kernels::gate<T>{out, made.g.data(), made.q.data()});
      detail::project(ctx, positions, hidden, channels, made.q.data(), arg.weights.o,
                      arg.y + first * channels);
    });
  }
}

template <class Context, class T>
void run_rows(Context& ctx, attended_rows_backward<T> const& arg) {
  if constexpr (detail::attends_rows<Context>) {
    run_attended(ctx, arg);
  } else {
    using A = accumulate_t<T>;
    using Device = typename Context::device_type;
    attention_shape const& s = arg.shape;
    std::int64_t const channels = arg.in.channels, hidden = s.heads * s.width,
                       most = detail::rows_together<Device>(s) * s.queries,
                       most_keys = detail::rows_together<Device>(s) * s.keys;
    detail::projected_rows<T, Device> made(ctx.memory(), s, channels, arg.among_themselves());
    scratch<T> dq(ctx.memory(), most * hidden), dk(ctx.memory(), most_keys * hidden),
        dv(ctx.memory(), most_keys * hidden), d_o(ctx.memory(), most * hidden);
    detail::each_block_of_rows<Device>(s, [&](detail::block_of_rows const& block) {
      std::int64_t const positions = block.positions(s), first = block.position(s);
      T const* const dy = arg.dy + first * channels;
      T const* const o = arg.o + first * hidden;
      made.fill(ctx, arg, block);
      for_each(ctx, positions * hidden, kernels::gate<T>{o, made.g.data(), dq.data()});
      detail::add_projection_gradient(ctx, positions, hidden, channels, dy, dq.data(),
                                      arg.gradients.o);
      detail::project_backward(ctx, positions, hidden, channels, dy, arg.weights.o, d_o.data(),
                               false);
      for_each(ctx, positions * hidden,
               kernels::gate_backward<T>{d_o.data(), o, made.g.data(), d_o.data(), made.g.data()});
      run_attention(
          ctx, attention_rows_backward<T>{
                   made.input(arg, block),
                   o,
                   {arg.statistics.max + first * s.heads, arg.statistics.sum + first * s.heads},
                   d_o.data(),
                   dq.data(),
                   dk.data(),
                   dv.data(),
                   arg.dbias + block.sample * s.heads * s.queries * s.keys,
                   false});
      auto const finish = [&](std::int64_t rows, T const* upstream, T const* u, T const* weight,
                              A* gradient, A* du, bool add) {
        detail::add_projection_gradient(ctx, rows, channels, hidden, upstream, u, gradient);
        detail::project_backward(ctx, rows, channels, hidden, upstream, weight, du, add);
      };
      A* const du = arg.du + first * channels;
      A* const du_keys = arg.among_themselves() ? du : arg.du_keys + block.key(s) * channels;
      std::int64_t const keys = block.keys(s);
      finish(positions, dq.data(), made.u.data(), arg.weights.q, arg.gradients.q, du, false);
      finish(keys, dk.data(), made.u_keys(), arg.weights.k, arg.gradients.k, du_keys, true);
      finish(keys, dv.data(), made.u_keys(), arg.weights.v, arg.gradients.v, du_keys, true);
      finish(positions, made.g.data(), made.u.data(), arg.weights.g, arg.gradients.g, du, true);
    });
  }
}

}  // namespace dtm::local
