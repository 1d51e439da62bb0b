#pragma once
// What operations on rows are made of on a device that does not have them as one: single steps on a block
// of positions at a time, so that what lies between is small beside a tile. Local.

#include <algorithm>
#include <cstdint>

#include "dtm/backend/fused_rows.hpp"
#include "dtm/backend/local.hpp"
#include "dtm/core/device.hpp"
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

/// A block of positions: several whole samples, or some positions of one. `first` is among the positions
/// of all samples; of planes [batch, count, positions] those of its samples begin at `planes`.
struct block_of_positions {
  std::int64_t first, samples, each, planes;
  position_runs runs;  // in its sample, where it is not whole
  std::int64_t length() const { return samples * each; }
  bool is_whole() const { return each == runs.step; }
};

template <class Device>
struct blocks_of_positions {
  std::int64_t batch, positions;

  bool are_whole() const { return positions <= positions_together<Device>; }
  std::int64_t samples_together() const {
    return positions == 0 ? batch : std::min(batch, positions_together<Device> / positions);
  }
  std::int64_t most() const {
    return are_whole() ? samples_together() * positions : positions_together<Device>;
  }
  /// f(block) for every block.
  template <class F>
  void each(std::int64_t count, F const& f) const {
    if (positions == 0) return;
    if (are_whole())
      return each_block(batch, samples_together(), [&](std::int64_t first, std::int64_t samples) {
        f(block_of_positions{first * positions, samples, positions, first * count * positions,
                             position_runs{1, positions, 0, positions}});
      });
    for (std::int64_t b = 0; b < batch; ++b)
      each_block(positions, most(), [&](std::int64_t first, std::int64_t length) {
        f(block_of_positions{b * positions + first, 1, length, b * count * positions,
                             position_runs{1, positions, first, length}});
      });
  }
};

/// `count` planes of a block: where they lie if the block is whole, else a copy.
template <class T>
class planes_of_block {
 public:
  template <class Device>
  planes_of_block(memory& storage, blocks_of_positions<Device> const& blocks, std::int64_t count)
      : count_(count), copy_(storage, blocks.are_whole() ? 0 : blocks.most() * count) {}

  template <class Context>
  T const* take(Context& ctx, block_of_positions const& block, T const* all) {
    if (block.is_whole()) return all + block.planes;
    take_positions(ctx, block.runs, count_, 1, all + block.planes, copy_.data());
    return copy_.data();
  }
  /// To be written, and put then.
  T* place(block_of_positions const& block, T* all) {
    return block.is_whole() ? all + block.planes : copy_.data();
  }
  template <class Context>
  void put(Context& ctx, block_of_positions const& block, T* all) const {
    if (!block.is_whole())
      put_positions(ctx, block.runs, count_, 1, static_cast<T const*>(copy_.data()),
                    all + block.planes);
  }

 private:
  std::int64_t count_;
  scratch<T> copy_;
};

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
