#pragma once
// Linear layer over the last dimension (torch.nn.Linear).
//
//   y = x W^T (+ b)        x (.., in), W (out, in), b (out), y (.., out)
//   dx = dy W ;  dW += dy^T x ;  db += sum of dy over all positions
//
// Saves nothing of its own: backward is given the x of forward, which the caller keeps.

#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/array.hpp"
#include "dtm/serial/parameters.hpp"

namespace dtm::serial {

template <class T>
struct linear {
  using value_type = T;

  array<T> weight;  // (out, in)
  array<T> bias;    // (out), absent without bias

  linear() = default;
  linear(std::int64_t in, std::int64_t out, bool with_bias = false)
      : weight({out, in}), bias(with_bias ? array<T>({out}) : array<T>()) {}

  std::int64_t in() const { return weight.extent(1); }
  std::int64_t out() const { return weight.extent(0); }

  array<T> forward(array<T> const& x) const {
    expect_extents(x, with_channels(x, in()), "linear: x");
    array<T> y(with_channels(x, out()));
    std::int64_t const inputs = in();
    for (std::int64_t p = 0; p < x.positions(); ++p)
      for (std::int64_t o = 0; o < out(); ++o) {
        T const* from = x.position(p);
        T const* w = weight.row(o);
        T sum = bias.absent() ? T(0) : bias(o);
        for (std::int64_t i = 0; i < inputs; ++i) sum += from[i] * w[i];
        y.position(p)[o] = sum;
      }
    return y;
  }

  /// Adds the parameter gradients and returns dx.
  array<T> backward(array<T> const& x, array<T> const& dy, linear& gradients) const {
    expect_extents(x, with_channels(x, in()), "linear: x");
    expect_extents(dy, with_channels(x, out()), "linear: dy");
    array<T> dx(x.extents);
    std::int64_t const inputs = in();
    for (std::int64_t p = 0; p < x.positions(); ++p)
      for (std::int64_t o = 0; o < out(); ++o) {
        T const g = dy.position(p)[o];
        T const* from = x.position(p);
        T const* w = weight.row(o);
        T* to = dx.position(p);
        T* dw = gradients.weight.row(o);
        for (std::int64_t i = 0; i < inputs; ++i) {
          to[i] += g * w[i];
          dw[i] += g * from[i];
        }
        if (!bias.absent()) gradients.bias(o) += g;
      }
    return dx;
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    f(dotted(prefix, "weight"), weight);
    if (!bias.absent()) f(dotted(prefix, "bias"), bias);
  }
};

}  // namespace dtm::serial
