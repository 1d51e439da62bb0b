#pragma once
// Layer norm over the last dimension, biased variance (torch.nn.LayerNorm).
//
//   mu = mean x ;  r = 1 / sqrt(mean (x - mu)^2 + eps) ;  xh = (x - mu) r ;  y = weight xh + bias
//   g = dy weight ;  dx = r (g - mean g - xh mean(g xh))
//   dweight += sum dy xh ;  dbias += sum dy          x, y (.., C), weight, bias (C)
//
// Means run over the channels, sums over the positions. Saves nothing of its own: backward is given
// the x of forward, which the caller keeps.

#include <cmath>
#include <cstdint>
#include <string>

#include "dtm/serial/array.hpp"
#include "dtm/serial/parameters.hpp"

namespace dtm::serial {

template <class T>
struct layer_norm {
  using value_type = T;

  array<T> weight;  // (C)
  array<T> bias;    // (C)
  T epsilon = T(1e-5);

  layer_norm() = default;
  explicit layer_norm(std::int64_t channels) : weight({channels}, T(1)), bias({channels}) {}

  std::int64_t channels() const { return weight.extent(0); }

  array<T> forward(array<T> const& x) const {
    expect_extents(x, with_channels(x, channels()), "layer_norm: x");
    array<T> y(x.extents);
    for (std::int64_t p = 0; p < x.positions(); ++p) {
      auto const [mean, scale] = statistics(x.position(p));
      for (std::int64_t c = 0; c < channels(); ++c)
        y.position(p)[c] = weight(c) * ((x.position(p)[c] - mean) * scale) + bias(c);
    }
    return y;
  }

  /// Adds the parameter gradients and returns dx.
  array<T> backward(array<T> const& x, array<T> const& dy, layer_norm& gradients) const {
    expect_extents(x, with_channels(x, channels()), "layer_norm: x");
    expect_extents(dy, x.extents, "layer_norm: dy");
    array<T> dx(x.extents);
    T const count = static_cast<T>(channels());
    for (std::int64_t p = 0; p < x.positions(); ++p) {
      auto const [mean, scale] = statistics(x.position(p));
      T mean_g = T(0);
      T mean_g_xh = T(0);
      for (std::int64_t c = 0; c < channels(); ++c) {
        T const xh = (x.position(p)[c] - mean) * scale;
        T const g = dy.position(p)[c] * weight(c);
        mean_g += g / count;
        mean_g_xh += g * xh / count;
        gradients.weight(c) += dy.position(p)[c] * xh;
        gradients.bias(c) += dy.position(p)[c];
      }
      for (std::int64_t c = 0; c < channels(); ++c) {
        T const xh = (x.position(p)[c] - mean) * scale;
        T const g = dy.position(p)[c] * weight(c);
        dx.position(p)[c] = scale * (g - mean_g - xh * mean_g_xh);
      }
    }
    return dx;
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    f(dotted(prefix, "weight"), weight);
    f(dotted(prefix, "bias"), bias);
  }

 private:
  struct moments {
    T mean;
    T scale;  // 1 / sqrt(variance + eps)
  };

  moments statistics(T const* x) const {
    T const count = static_cast<T>(channels());
    T mean = T(0);
    for (std::int64_t c = 0; c < channels(); ++c) mean += x[c];
    mean /= count;
    T variance = T(0);
    for (std::int64_t c = 0; c < channels(); ++c) variance += (x[c] - mean) * (x[c] - mean);
    variance /= count;
    return {mean, T(1) / std::sqrt(variance + epsilon)};
  }
};

}  // namespace dtm::serial
