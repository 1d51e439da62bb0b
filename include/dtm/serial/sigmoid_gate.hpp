#pragma once
// Sigmoid gate, elementwise.
//
//   gate = sig(g) ;  y = x gate
//   dx = dy gate ;   dg = dy y (1 - gate)

#include <cmath>
#include <cstddef>

#include "dtm/serial/array.hpp"

namespace dtm::serial {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
struct sigmoid_gate_result {
  array<T> y;
  array<T> gate;  // y and gate are all that backward needs
};

template <class T>
struct sigmoid_gate_cotangents {
  array<T> dx;
  array<T> dg;
};

/// x and g of equal extents.
template <class T>
sigmoid_gate_result<T> sigmoid_gate(array<T> const& x, array<T> const& g) {
  expect_extents(g, x.extents, "sigmoid_gate: g");
  sigmoid_gate_result<T> result{zeros_like(x), zeros_like(x)};
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    result.gate.values[i] = sigmoid(g.values[i]);
    result.y.values[i] = x.values[i] * result.gate.values[i];
  }
  return result;
}

template <class T>
sigmoid_gate_cotangents<T> sigmoid_gate_backward(array<T> const& y, array<T> const& gate,
                                                 array<T> const& dy) {
  expect_extents(dy, y.extents, "sigmoid_gate: dy");
  sigmoid_gate_cotangents<T> result{zeros_like(y), zeros_like(y)};
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    result.dx.values[i] = dy.values[i] * gate.values[i];
    result.dg.values[i] = dy.values[i] * y.values[i] * (T(1) - gate.values[i]);
  }
  return result;
}

}  // namespace dtm::serial
