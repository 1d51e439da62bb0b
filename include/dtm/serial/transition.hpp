#pragma once
// Transition: layer norm, SwiGLU and a projection, position by position, no residual inside. The
// serial module is Boltz-2's Transition.
//
//   u = norm(x) ;  h1 = fc1(u) ;  h2 = fc2(u) ;  a = h1 sig(h1) h2 ;  y = fc3(a)
//   x (.., D), h1, h2, a (.., F), y (.., D')
//
//   da = dy W3 ;  dh2 = da h1 sig(h1) ;  dh1 = da h2 sig(h1) (1 + h1 (1 - sig(h1)))
//   dx = norm backward (dh1 W1 + dh2 W2)

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/layer_norm.hpp"
#include "dtm/serial/linear.hpp"
#include "dtm/serial/sigmoid_gate.hpp"

namespace dtm::serial {

template <class T>
struct transition {
  using value_type = T;

  layer_norm<T> norm;
  linear<T> fc1;  // (F, D)
  linear<T> fc2;  // (F, D)
  linear<T> fc3;  // (D', F)

  struct saved {
    array<T> x;
    array<T> u;
    array<T> h1;
    array<T> h2;
  };
  struct result {
    array<T> y;
    saved kept;
  };

  transition() = default;
  transition(std::int64_t dim, std::int64_t hidden) : transition(dim, hidden, dim) {}
  transition(std::int64_t dim, std::int64_t hidden, std::int64_t out)
      : norm(dim), fc1(dim, hidden), fc2(dim, hidden), fc3(hidden, out) {}

  result forward(array<T> const& x) const {
    array<T> u = norm.forward(x);
    array<T> h1 = fc1.forward(u);
    array<T> h2 = fc2.forward(u);
    array<T> y = fc3.forward(swiglu(h1, h2));
    return {std::move(y), {x, std::move(u), std::move(h1), std::move(h2)}};
  }

  /// Adds the parameter gradients and returns dx.
  array<T> backward(saved const& kept, array<T> const& dy, transition& gradients) const {
    array<T> const da = fc3.backward(swiglu(kept.h1, kept.h2), dy, gradients.fc3);
    array<T> dh1 = zeros_like(da);
    array<T> dh2 = zeros_like(da);
    for (std::size_t i = 0; i < da.values.size(); ++i) {
      T const h1 = kept.h1.values[i];
      T const s = sigmoid(h1);
      dh2.values[i] = da.values[i] * h1 * s;
      dh1.values[i] = da.values[i] * kept.h2.values[i] * s * (T(1) + h1 * (T(1) - s));
    }
    array<T> du = fc1.backward(kept.u, dh1, gradients.fc1);
    du += fc2.backward(kept.u, dh2, gradients.fc2);
    return norm.backward(kept.x, du, gradients.norm);
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    norm.each_parameter(f, dotted(prefix, "norm"));
    fc1.each_parameter(f, dotted(prefix, "fc1"));
    fc2.each_parameter(f, dotted(prefix, "fc2"));
    fc3.each_parameter(f, dotted(prefix, "fc3"));
  }

 private:
  static array<T> swiglu(array<T> const& h1, array<T> const& h2) {
    array<T> a = zeros_like(h1);
    for (std::size_t i = 0; i < a.values.size(); ++i)
      a.values[i] = h1.values[i] * sigmoid(h1.values[i]) * h2.values[i];
    return a;
  }
};

}  // namespace dtm::serial
