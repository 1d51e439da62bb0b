#pragma once
// What operations on rows are made of on a device that does not have them as one: single steps on a block
// of positions at a time, so that what lies between is small beside a tile. Local.

#include <algorithm>
#include <cstdint>

#include "dtm/backend/fused_rows.hpp"
#include "dtm/backend/local.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/ops/position_runs.hpp"

namespace dtm::local::detail {

/// So many positions keep a device busy, or are near the host's caches. The emulated one has few: its
/// tests are of several blocks.
template <class Device>
inline constexpr std::int64_t positions_together = fused_rows<Device>::available ? 4096 : 65536;
template <>
inline constexpr std::int64_t positions_together<emulated> = 64;
template <>
inline constexpr std::int64_t positions_together<planned<emulated>> = positions_together<emulated>;

/// f(first, length) for every block of at most `most`.
template <class F>
void each_block(std::int64_t count, std::int64_t most, F const& f) {
  for (std::int64_t first = 0; first < count; first += most)
    f(first, std::min(most, count - first));
}

/// A block of a sample's positions: where it begins among those of all samples, and of planes
/// [batch, count, positions] what is its own.
struct block_of_positions {
  std::int64_t first, length;
  position_runs runs;
  std::int64_t planes;
};
template <class Device, class F>
void each_block_of_planes(std::int64_t batch, std::int64_t count, std::int64_t positions,
                          F const& f) {
  for (std::int64_t b = 0; b < batch; ++b)
    each_block(positions, positions_together<Device>, [&](std::int64_t first, std::int64_t length) {
      f(block_of_positions{
          b * positions + first, length, {1, positions, first, length}, b * count * positions});
    });
}

/// result [positions, out] = x [positions, in] W^T.
template <class Context, class T>
void project(Context& ctx, std::int64_t positions, std::int64_t in, std::int64_t out, T const* x,
             T const* weight, T* result) {
  gemm_shape shape{1, positions, out, in};
  shape.right_transposed = true;
  gemm(ctx, shape, x, weight, result);
}
/// dx (+)= dy W, dW += dy^T x.
template <class Context, class T, class Result>
void project_backward(Context& ctx, std::int64_t positions, std::int64_t in, std::int64_t out,
                      T const* dy, T const* weight, Result* dx, bool add) {
  gemm_shape shape{1, positions, in, out};
  shape.accumulate = add;
  gemm(ctx, shape, dy, weight, dx);
}
template <class Context, class T, class A>
void add_projection_gradient(Context& ctx, std::int64_t positions, std::int64_t in,
                             std::int64_t out, T const* dy, T const* x, A* gradient) {
  gemm_shape shape{1, out, in, positions};
  shape.left_transposed = true;
  shape.accumulate = true;
  gemm(ctx, shape, dy, x, gradient);
}

template <class Context, class T>
void norm_again(Context& ctx, normalised_rows<T> const& in, std::int64_t first,
                std::int64_t positions, T* u) {
  layer_norm_apply(ctx, positions, in.channels, in.x + first * in.channels,
                   in.statistics.mean + first, in.statistics.rstd + first, in.norm.gamma,
                   in.norm.beta, u);
}

}  // namespace dtm::local::detail
