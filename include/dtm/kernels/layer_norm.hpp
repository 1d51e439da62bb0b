#pragma once
// Layer normalisation over the last dimension. A warp does a row and holds it in registers, `Held`
// vectors of `Length` elements a lane, so that a row is read once; rows too wide for that, or not
// aligned, go to layer_norm_wide.hpp. Lane l has the elements [(v 32 + l) Length, + Length) for
// v = 0, 1, ...; sums are of a lane in this order, then of the lanes (law L13).

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/block.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

template <class A>
DTM_HD inline A reciprocal_root(A x) {
  using std::sqrt;
  return A(1) / sqrt(x);
}

/// A row in the registers of a warp, widened to the accumulation type.
template <class T, int Length, int Held>
struct held_row {
  using A = accumulate_t<T>;
  A element[Held * Length];

  DTM_HD static std::int64_t position(int lane, int v) {
    return (std::int64_t(v) * warp_size + lane) * Length;
  }
  /// Beyond the channels the row is 0.
  template <class Block>
  DTM_HD void load(Block& block, T const* row, std::int64_t channels) {
    DTM_UNROLL
    for (int v = 0; v < Held; ++v) {
      std::int64_t const c = position(block.lane(), v);
      vector<T, Length> some;
      for (int n = 0; n < Length; ++n) some[n] = T(0.0f);
      if (c < channels) some = block.template load<Length>(row + c);
      DTM_UNROLL
      for (int n = 0; n < Length; ++n) element[v * Length + n] = A(some[n]);
    }
  }
  template <class Block>
  DTM_HD void store(Block& block, T* row, std::int64_t channels) const {
    DTM_UNROLL
    for (int v = 0; v < Held; ++v) {
      std::int64_t const c = position(block.lane(), v);
      vector<T, Length> some;
      DTM_UNROLL
      for (int n = 0; n < Length; ++n) some[n] = T(element[v * Length + n]);
      if (c < channels) block.store(row + c, some);
    }
  }
  DTM_HD void normalise(A mean, A r, held_row const& gamma, held_row const& beta) {
    DTM_UNROLL
    for (int i = 0; i < Held * Length; ++i)
      element[i] = (element[i] - mean) * r * gamma.element[i] + beta.element[i];
  }
  /// visit(i, c) for this lane's elements that exist.
  template <class Visit>
  DTM_HD static void each(int lane, std::int64_t channels, Visit visit) {
    DTM_UNROLL
    for (int v = 0; v < Held; ++v) {
      std::int64_t const c = position(lane, v);
      if (c < channels) {
        DTM_UNROLL
        for (int n = 0; n < Length; ++n) visit(v * Length + n, c + n);
      }
    }
  }
};

/// Rows of a grid of warps: row = first, first + step, ...
template <class Block>
struct warp_rows {
  std::int64_t first, step;
  DTM_HD explicit warp_rows(Block& block)
      : first(block.index() * (block.size() / warp_size) + block.warp()),
        step(block.grid() * (block.size() / warp_size)) {}
};

/// y, mean and rstd. Reads 1, writes 1 (and 2 a row); 8 flops; memory.
template <class T, int Length, int Held>
struct layer_norm_rows {
  static constexpr int threads = 128;
  using A = accumulate_t<T>;
  using row_type = held_row<T, Length, Held>;
  std::int64_t rows, channels;
  A eps;
  T const* x;
  T const* gamma;
  T const* beta;
  T* y;
  A* mean;
  A* rstd;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    warp_rows<Block> const mine(block);
    row_type scale, shift, in;
    scale.load(block, gamma, channels);
    shift.load(block, beta, channels);
    for (std::int64_t row = mine.first; row < rows; row += mine.step) {
      in.load(block, x + row * channels, channels);
      A total = A(0);
      DTM_UNROLL
      for (int i = 0; i < Held * Length; ++i) total += in.element[i];
      A const mu = warp_sum(block, total) / A(channels);
      A square = A(0);
      row_type::each(block.lane(), channels, [&](int i, std::int64_t) {
        A const centred = in.element[i] - mu;
        square += centred * centred;
      });
      A const r = reciprocal_root(warp_sum(block, square) / A(channels) + eps);
      if (block.lane() == 0) {
        mean[row] = mu;
        rstd[row] = r;
      }
      in.normalise(mu, r, scale, shift);
      in.store(block, y + row * channels, channels);
    }
  }
};

/// The same y from kept statistics. Reads 1, writes 1; 4 flops; memory.
template <class T, int Length, int Held>
struct layer_norm_apply_rows {
  static constexpr int threads = 128;
  using A = accumulate_t<T>;
  using row_type = held_row<T, Length, Held>;
  std::int64_t rows, channels;
  T const* x;
  A const* mean;
  A const* rstd;
  T const* gamma;
  T const* beta;
  T* y;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    warp_rows<Block> const mine(block);
    row_type scale, shift, in;
    scale.load(block, gamma, channels);
    shift.load(block, beta, channels);
    for (std::int64_t row = mine.first; row < rows; row += mine.step) {
      in.load(block, x + row * channels, channels);
      in.normalise(mean[row], rstd[row], scale, shift);
      in.store(block, y + row * channels, channels);
    }
  }
};

/// dx, and for every warp the sums of its rows for dgamma and dbeta: [warps of the grid, channels].
/// column_sums adds the warps up. Reads 2, writes 1; 14 flops; memory.
template <class T, int Length, int Held>
struct layer_norm_backward_rows {
  static constexpr int threads = 128;
  using A = accumulate_t<T>;
  using row_type = held_row<T, Length, Held>;
  std::int64_t rows, channels;
  T const* dy;
  T const* x;
  A const* mean;
  A const* rstd;
  T const* gamma;
  T* dx;
  A* of_gamma;
  A* of_beta;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    constexpr int held = Held * Length;
    warp_rows<Block> const mine(block);
    A sum_gamma[held], sum_beta[held];
    DTM_UNROLL
    for (int i = 0; i < held; ++i) sum_gamma[i] = sum_beta[i] = A(0);
    row_type scale, g, normal;
    scale.load(block, gamma, channels);
    for (std::int64_t row = mine.first; row < rows; row += mine.step) {
      g.load(block, dy + row * channels, channels);
      normal.load(block, x + row * channels, channels);
      A const mu = mean[row], r = rstd[row];
      A mean_g = A(0), mean_gx = A(0);
      DTM_UNROLL
      for (int i = 0; i < held; ++i) {  // beyond the channels g is 0, and so is what it multiplies
        normal.element[i] = (normal.element[i] - mu) * r;
        A const scaled = g.element[i] * scale.element[i];
        sum_gamma[i] += g.element[i] * normal.element[i];
        sum_beta[i] += g.element[i];
        mean_g += scaled;
        mean_gx += scaled * normal.element[i];
        g.element[i] = scaled;
      }
      mean_g = warp_sum(block, mean_g) / A(channels);
      mean_gx = warp_sum(block, mean_gx) / A(channels);
      DTM_UNROLL
      for (int i = 0; i < held; ++i)
        g.element[i] = r * (g.element[i] - mean_g - normal.element[i] * mean_gx);
      g.store(block, dx + row * channels, channels);
    }
    row_type::each(block.lane(), channels, [&](int i, std::int64_t c) {
      of_gamma[mine.first * channels + c] = sum_gamma[i];
      of_beta[mine.first * channels + c] = sum_beta[i];
    });
  }
};

}  // namespace dtm::kernels
