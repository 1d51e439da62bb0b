#pragma once
// Element-wise kernels: function objects over an index, plain data members are the arguments.
// Arithmetic is in the accumulation type A; T is storage. No standard containers, no device
// headers (the math functions are found by overload).
//
// `many` does `neighbours` indices at once, see device_form.hpp; `may_vector` says whether the
// pointers and the channels allow it. Outputs may be the storage of inputs: every index is read
// before it is written.

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/arrangement.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

template <class A>
DTM_HD inline A sigmoid(A x) {
  using std::exp;
  // no overflow for either sign
  return x >= A(0) ? A(1) / (A(1) + exp(-x)) : exp(x) / (A(1) + exp(x));
}

/// y = 0. Writes 1; memory.
template <class T>
struct set_zero {
  static constexpr int neighbours = vector_length<T>;
  T* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = T(0.0f); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    vector<T, neighbours> zeros;
    for (int n = 0; n < neighbours; ++n) zeros[n] = T(0.0f);
    block.store(y + i, zeros);
  }
  bool may_vector() const { return are_aligned<neighbours>(y); }
};

/// y = x. Reads 1, writes 1; memory.
template <class From, class To>
struct convert {
  static constexpr int neighbours =
      vector_length<From> < vector_length<To> ? vector_length<From> : vector_length<To>;
  From const* x;
  To* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = To(x[i]); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    vector<From, neighbours> const from = block.template load<neighbours>(x + i);
    vector<To, neighbours> to;
    for (int n = 0; n < neighbours; ++n) to[n] = To(from[n]);
    block.store(y + i, to);
  }
  bool may_vector() const { return are_aligned<neighbours>(x) && are_aligned<neighbours>(y); }
};

/// y += x. Reads 2, writes 1; 1 flop; memory.
template <class T>
struct add {
  static constexpr int neighbours = vector_length<T>;
  T const* x;
  T* y;
  DTM_HD static T value(T x, T y) { return T(accumulate_t<T>(y) + accumulate_t<T>(x)); }
  DTM_HD void operator()(std::int64_t i) const { y[i] = value(x[i], y[i]); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const in = block.template load<neighbours>(x + i);
    vector<T, neighbours> sum = block.template load<neighbours>(y + i);
    for (int n = 0; n < neighbours; ++n) sum[n] = value(in[n], sum[n]);
    block.store(y + i, sum);
  }
  bool may_vector() const { return are_aligned<neighbours>(x, y); }
};

/// y *= factor. Reads 1, writes 1; 1 flop; memory.
template <class T>
struct scale {
  static constexpr int neighbours = vector_length<T>;
  accumulate_t<T> factor;
  T* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = T(accumulate_t<T>(y[i]) * factor); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    vector<T, neighbours> out = block.template load<neighbours>(y + i);
    for (int n = 0; n < neighbours; ++n) out[n] = T(accumulate_t<T>(out[n]) * factor);
    block.store(y + i, out);
  }
  bool may_vector() const { return are_aligned<neighbours>(y); }
};

/// y *= *factor, a number that the host need not know. Reads 1, writes 1; 1 flop; memory.
template <class T>
struct scale_by {
  static constexpr int neighbours = vector_length<T>;
  accumulate_t<T> const* factor;
  T* y;
  DTM_HD void operator()(std::int64_t i) const { scale<T>{*factor, y}(i); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    scale<T>{*factor, y}.many(block, i);
  }
  bool may_vector() const { return are_aligned<neighbours>(y); }
};

/// y[row, c] += bias[c]. Reads 1 (the bias comes from cache), writes 1; 1 flop; memory.
template <class T>
struct add_bias {
  static constexpr int neighbours = vector_length<T>;
  T const* bias;
  std::int64_t channels;
  T* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = add<T>::value(bias[i % channels], y[i]); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const in = block.template load<neighbours>(bias + i % channels);
    vector<T, neighbours> sum = block.template load<neighbours>(y + i);
    for (int n = 0; n < neighbours; ++n) sum[n] = add<T>::value(in[n], sum[n]);
    block.store(y + i, sum);
  }
  bool may_vector() const { return channels % neighbours == 0 && are_aligned<neighbours>(bias, y); }
};

/// Two results of an element.
template <class T>
struct two_values {
  T first, second;
};

/// y = x * sigmoid(g). Reads 2, writes 1; 12 flops with one exponential; memory.
template <class T>
struct gate {
  static constexpr int neighbours = vector_length<T>;
  T const* x;
  T const* g;
  T* y;
  DTM_HD static T value(T x, T g) {
    using A = accumulate_t<T>;
    return T(A(x) * sigmoid(A(g)));
  }
  DTM_HD void operator()(std::int64_t i) const { y[i] = value(x[i], g[i]); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const in = block.template load<neighbours>(x + i);
    auto const by = block.template load<neighbours>(g + i);
    vector<T, neighbours> out;
    for (int n = 0; n < neighbours; ++n) out[n] = value(in[n], by[n]);
    block.store(y + i, out);
  }
  bool may_vector() const { return are_aligned<neighbours>(x, g, y); }
};

/// y = x * sigmoid(g): dx = dy * sigmoid(g), dg = dy * y * (1 - sigmoid(g)). dx may be dy's
/// storage. Reads 3, writes 2; 16 flops with one exponential; memory.
template <class T>
struct gate_backward {
  static constexpr int neighbours = vector_length<T>;
  T const* dy;
  T const* x;
  T const* g;
  T* dx;
  T* dg;
  /// dx, dg of one element for the upstream gradient in the accumulation type.
  DTM_HD static two_values<T> value(accumulate_t<T> upstream, T x, T g) {
    using A = accumulate_t<T>;
    A const open = sigmoid(A(g));
    return {T(upstream * open), T(upstream * A(x) * open * (A(1) - open))};
  }
  DTM_HD void operator()(std::int64_t i) const {
    auto const both = value(accumulate_t<T>(dy[i]), x[i], g[i]);
    dg[i] = both.second;
    dx[i] = both.first;
  }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const upstream = block.template load<neighbours>(dy + i);
    auto const in = block.template load<neighbours>(x + i);
    auto const by = block.template load<neighbours>(g + i);
    vector<T, neighbours> of_x, of_g;
    for (int n = 0; n < neighbours; ++n) {
      auto const both = value(accumulate_t<T>(upstream[n]), in[n], by[n]);
      of_x[n] = both.first;
      of_g[n] = both.second;
    }
    block.store(dg + i, of_g);
    block.store(dx + i, of_x);
  }
  bool may_vector() const { return are_aligned<neighbours>(dy, x, g, dx, dg); }
};

/// y = silu(h1) * h2. Reads 2, writes 1; 13 flops with one exponential; memory.
template <class T>
struct swiglu {
  static constexpr int neighbours = vector_length<T>;
  T const* h1;
  T const* h2;
  T* y;
  DTM_HD static T value(T h1, T h2) {
    using A = accumulate_t<T>;
    A const x = A(h1);
    return T(x * sigmoid(x) * A(h2));
  }
  DTM_HD void operator()(std::int64_t i) const { y[i] = value(h1[i], h2[i]); }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const first = block.template load<neighbours>(h1 + i);
    auto const second = block.template load<neighbours>(h2 + i);
    vector<T, neighbours> out;
    for (int n = 0; n < neighbours; ++n) out[n] = value(first[n], second[n]);
    block.store(y + i, out);
  }
  bool may_vector() const { return are_aligned<neighbours>(h1, h2, y); }
};

/// dh2 = dy * silu(h1), dh1 = dy * h2 * s * (1 + h1 (1 - s)). Reads 3, writes 2; 19 flops with one
/// exponential; memory.
template <class T>
struct swiglu_backward {
  static constexpr int neighbours = vector_length<T>;
  T const* dy;
  T const* h1;
  T const* h2;
  T* dh1;
  T* dh2;
  DTM_HD static two_values<T> value(T dy, T h1, T h2) {
    using A = accumulate_t<T>;
    A const x = A(h1), other = A(h2), upstream = A(dy), s = sigmoid(x);
    return {T(upstream * other * s * (A(1) + x * (A(1) - s))), T(upstream * x * s)};
  }
  DTM_HD void operator()(std::int64_t i) const {
    auto const both = value(dy[i], h1[i], h2[i]);
    dh1[i] = both.first;
    dh2[i] = both.second;
  }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const upstream = block.template load<neighbours>(dy + i);
    auto const first = block.template load<neighbours>(h1 + i);
    auto const second = block.template load<neighbours>(h2 + i);
    vector<T, neighbours> of_first, of_second;
    for (int n = 0; n < neighbours; ++n) {
      auto const both = value(upstream[n], first[n], second[n]);
      of_first[n] = both.first;
      of_second[n] = both.second;
    }
    block.store(dh1 + i, of_first);
    block.store(dh2 + i, of_second);
  }
  bool may_vector() const { return are_aligned<neighbours>(dy, h1, h2, dh1, dh2); }
};

}  // namespace dtm::kernels
