#pragma once
// Loops, row reductions and sums on the host.

#include <cmath>
#include <cstdint>

#include "dtm/backend/local.hpp"
#include "dtm/core/device.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/relative_position.hpp"

namespace dtm::local {

template <>
struct for_each_impl<host> {
  template <class Context, class Kernel>
  static void run(Context&, std::int64_t count, Kernel const& kernel) {
    for (std::int64_t i = 0; i < count; ++i) kernel(i);
  }
};

template <>
struct layer_norm_impl<host> {
  template <class Context, class T, class A>
  static void forward(Context& ctx, std::int64_t rows, std::int64_t channels, A eps, T const* x,
                      T const* gamma, T const* beta, T* y, A* mean, A* rstd) {
    for (std::int64_t row = 0; row < rows; ++row) {
      T const* const in = x + row * channels;
      A sum = 0;
      for (std::int64_t c = 0; c < channels; ++c) sum += A(in[c]);
      A const mu = sum / A(channels);
      A square = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        A const centred = A(in[c]) - mu;
        square += centred * centred;
      }
      mean[row] = mu;
      rstd[row] = A(1) / std::sqrt(square / A(channels) + eps);
    }
    apply(ctx, rows, channels, x, mean, rstd, gamma, beta, y);
  }

  template <class Context, class T, class A>
  static void apply(Context&, std::int64_t rows, std::int64_t channels, T const* x, A const* mean,
                    A const* rstd, T const* gamma, T const* beta, T* y) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t c = 0; c < channels; ++c) {
        std::int64_t const i = row * channels + c;
        y[i] = T((A(x[i]) - mean[row]) * rstd[row] * A(gamma[c]) + A(beta[c]));
      }
  }

  template <class Context, class T, class A>
  static void backward(Context&, std::int64_t rows, std::int64_t channels, T const* dy, T const* x,
                       A const* mean, A const* rstd, T const* gamma, T* dx, A* dgamma, A* dbeta) {
    for (std::int64_t row = 0; row < rows; ++row) {
      T const* const g = dy + row * channels;
      T const* const in = x + row * channels;
      A mean_g = 0, mean_gx = 0;
      for (std::int64_t c = 0; c < channels; ++c) {
        A const normal = (A(in[c]) - mean[row]) * rstd[row];
        A const scaled = A(g[c]) * A(gamma[c]);
        mean_g += scaled;
        mean_gx += scaled * normal;
        dgamma[c] += A(g[c]) * normal;
        dbeta[c] += A(g[c]);
      }
      mean_g /= A(channels);
      mean_gx /= A(channels);
      for (std::int64_t c = 0; c < channels; ++c) {
        A const normal = (A(in[c]) - mean[row]) * rstd[row];
        dx[row * channels + c] = T(rstd[row] * (A(g[c]) * A(gamma[c]) - mean_g - normal * mean_gx));
      }
    }
  }
};

template <>
struct column_sum_impl<host> {
  template <class Context, class T, class A>
  static void run(Context&, std::int64_t rows, std::int64_t columns, T const* x, A* result) {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        result[column] += A(x[row * columns + column]);
  }
};

template <>
struct square_sum_impl<host> {
  template <class Context, class T, class A>
  static void run(Context&, std::int64_t count, T const* x, A* result) {
    A total = *result;
    for (std::int64_t i = 0; i < count; ++i) total += A(x[i]) * A(x[i]);
    *result = total;
  }
};

template <>
struct selected_columns_impl<host> {
  template <class Context, class T, class A>
  static void run(Context& ctx, std::int64_t pairs, std::int64_t width, std::int64_t channels,
                  std::int32_t const* selected, T const* dz, A* gradient) {
    for_each(ctx, channels,
             kernels::scatter_selected_columns<T>{selected, dz, pairs, width, channels, gradient});
  }
};

}  // namespace dtm::local
