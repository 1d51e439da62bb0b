#pragma once
// Layer normalisation of rows that do not fit the registers of a warp, or are not aligned: a block
// a row, the row read again where it is needed again (from cache). Sums are of a thread over every
// 256th element, then of the block (law L13).

#include <cstdint>

#include "dtm/kernels/column_sum.hpp"
#include "dtm/kernels/layer_norm.hpp"

namespace dtm::kernels {

/// y, mean and rstd. Reads 1 (and 2 from cache), writes 1; 8 flops; memory.
template <class T>
struct layer_norm_wide {
  static constexpr int threads = 256;
  using A = accumulate_t<T>;
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
    for (std::int64_t row = block.index(); row < rows; row += block.grid()) {
      T const* const in = x + row * channels;
      A total = A(0);
      for (std::int64_t c = block.thread(); c < channels; c += block.size()) total += A(in[c]);
      A const mu = block_sum(block, total) / A(channels);
      A square = A(0);
      for (std::int64_t c = block.thread(); c < channels; c += block.size())
        square += (A(in[c]) - mu) * (A(in[c]) - mu);
      A const r = reciprocal_root(block_sum(block, square) / A(channels) + eps);
      if (block.thread() == 0) {
        mean[row] = mu;
        rstd[row] = r;
      }
      for (std::int64_t c = block.thread(); c < channels; c += block.size())
        y[row * channels + c] = T((A(in[c]) - mu) * r * A(gamma[c]) + A(beta[c]));
    }
  }
};

/// The same y from kept statistics, over an index. Reads 1, writes 1; 4 flops; memory.
template <class T>
struct layer_norm_apply_each {
  using A = accumulate_t<T>;
  std::int64_t channels;
  T const* x;
  A const* mean;
  A const* rstd;
  T const* gamma;
  T const* beta;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const row = i / channels, c = i % channels;
    y[i] = T((A(x[i]) - mean[row]) * rstd[row] * A(gamma[c]) + A(beta[c]));
  }
};

/// dx. Reads 2 (and 2 from cache), writes 1; 10 flops; memory.
template <class T>
struct layer_norm_backward_wide {
  static constexpr int threads = 256;
  using A = accumulate_t<T>;
  std::int64_t rows, channels;
  T const* dy;
  T const* x;
  A const* mean;
  A const* rstd;
  T const* gamma;
  T* dx;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    for (std::int64_t row = block.index(); row < rows; row += block.grid()) {
      T const* const g = dy + row * channels;
      T const* const in = x + row * channels;
      A const mu = mean[row], r = rstd[row];
      A mean_g = A(0), mean_gx = A(0);
      for (std::int64_t c = block.thread(); c < channels; c += block.size()) {
        A const scaled = A(g[c]) * A(gamma[c]);
        mean_g += scaled;
        mean_gx += scaled * ((A(in[c]) - mu) * r);
      }
      mean_g = block_sum(block, mean_g) / A(channels);
      mean_gx = block_sum(block, mean_gx) / A(channels);
      for (std::int64_t c = block.thread(); c < channels; c += block.size())
        dx[row * channels + c] =
            T(r * (A(g[c]) * A(gamma[c]) - mean_g - (A(in[c]) - mu) * r * mean_gx));
    }
  }
};

/// Terms of dgamma and dbeta of a chunk of rows: [chunk, channels] each, as column_sums has them.
/// Reads 2; 4 flops; memory.
template <class T>
struct layer_norm_parameter_sums {
  static constexpr int threads = column_threads;
  using A = accumulate_t<T>;
  struct gamma_tag {};
  struct beta_tag {};
  std::int64_t rows, channels, rows_each;
  T const* dy;
  T const* x;
  A const* mean;
  A const* rstd;
  A* of_gamma;
  A* of_beta;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    std::int64_t const across = (channels + warp_size - 1) / warp_size;
    std::int64_t const c = block.index() % across * warp_size + block.lane();
    std::int64_t const chunk = block.index() / across;
    std::int64_t const end = (chunk + 1) * rows_each < rows ? (chunk + 1) * rows_each : rows;
    A sum_gamma = A(0), sum_beta = A(0);
    if (c < channels) {
      for (std::int64_t row = chunk * rows_each + block.warp(); row < end;
           row += block.size() / warp_size) {
        A const g = A(dy[row * channels + c]);
        sum_gamma += g * ((A(x[row * channels + c]) - mean[row]) * rstd[row]);
        sum_beta += g;
      }
    }
    sum_gamma = sum_over_warps<gamma_tag>(block, sum_gamma);
    sum_beta = sum_over_warps<beta_tag>(block, sum_beta);
    if (block.warp() > 0 || c >= channels) return;
    of_gamma[chunk * channels + c] = sum_gamma;
    of_beta[chunk * channels + c] = sum_beta;
  }
};

}  // namespace dtm::kernels
