#pragma once
// Local operations: what a module computes on its own tile, whatever the device. Each is a
// function over an implementation that is declared here and defined by a backend header
// (dtm/host.hpp); forgetting that header is one error that names, say, gemm_impl<dtm::host> as
// incomplete. All blocks are contiguous and row-major; sums are formed in accumulate_t or wider
// and in a fixed order (laws L11, L13). Nothing here communicates.

#include <cstdint>

#include "dtm/core/element.hpp"

namespace dtm::local {

/// result[b, m, n] (+)= sum_k left[b, m, k] * right[b, k, n]; a transposed operand is stored [b,
/// k, m] or [b, n, k].
struct gemm_shape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool left_transposed = false, right_transposed = false;
  bool accumulate = false;
};

template <class Device>
struct gemm_impl;
template <class Device>
struct for_each_impl;
template <class Device>
struct layer_norm_impl;
template <class Device>
struct column_sum_impl;
template <class Device>
struct square_sum_impl;
template <class Device>
struct selected_columns_impl;

/// Result elements are T, or accumulate_t<T> for sums that must not be rounded.
template <class Context, class T, class Result>
void gemm(Context& ctx, gemm_shape const& shape, T const* left, T const* right, Result* result) {
  gemm_impl<typename Context::device_type>::run(ctx, shape, left, right, result);
}

/// kernel(i) for i in [0, count), in any order: no index may depend on another.
template <class Context, class Kernel>
void for_each(Context& ctx, std::int64_t count, Kernel const& kernel) {
  for_each_impl<typename Context::device_type>::run(ctx, count, kernel);
}

/// y = gamma * (x - mean) * rstd + beta over the last dimension; biased variance, eps inside the
/// root.
template <class Context, class T, class A>
void layer_norm_forward(Context& ctx, std::int64_t rows, std::int64_t channels, A eps, T const* x,
                        T const* gamma, T const* beta, T* y, A* mean, A* rstd) {
  layer_norm_impl<typename Context::device_type>::forward(ctx, rows, channels, eps, x, gamma, beta,
                                                          y, mean, rstd);
}

/// The same y again from kept statistics: what backward recomputes instead of keeping.
template <class Context, class T, class A>
void layer_norm_apply(Context& ctx, std::int64_t rows, std::int64_t channels, T const* x,
                      A const* mean, A const* rstd, T const* gamma, T const* beta, T* y) {
  layer_norm_impl<typename Context::device_type>::apply(ctx, rows, channels, x, mean, rstd, gamma,
                                                        beta, y);
}

/// dx assigned; gradients of gamma and beta added.
template <class Context, class T, class A>
void layer_norm_backward(Context& ctx, std::int64_t rows, std::int64_t channels, T const* dy,
                         T const* x, A const* mean, A const* rstd, T const* gamma, T* dx, A* dgamma,
                         A* dbeta) {
  layer_norm_impl<typename Context::device_type>::backward(ctx, rows, channels, dy, x, mean, rstd,
                                                           gamma, dx, dgamma, dbeta);
}

/// result[j] += sum over rows of x[row, j].
template <class Context, class T, class A>
void add_column_sum(Context& ctx, std::int64_t rows, std::int64_t columns, T const* x, A* result) {
  column_sum_impl<typename Context::device_type>::run(ctx, rows, columns, x, result);
}

/// *result += sum of x[i]^2.
template <class Context, class T, class A>
void sum_of_squares(Context& ctx, std::int64_t count, T const* x, A* result) {
  square_sum_impl<typename Context::device_type>::run(ctx, count, x, result);
}

/// The adjoint of kernels::add_selected_columns: gradient[ch, column] += sum of dz[pair, ch] over
/// the pairs that select the column; selected is [pair, 4], a negative one selects nothing.
template <class Context, class T, class A>
void add_selected_columns_gradient(Context& ctx, std::int64_t pairs, std::int64_t width,
                                   std::int64_t channels, std::int32_t const* selected, T const* dz,
                                   A* gradient) {
  selected_columns_impl<typename Context::device_type>::run(ctx, pairs, width, channels, selected,
                                                            dz, gradient);
}

}  // namespace dtm::local
