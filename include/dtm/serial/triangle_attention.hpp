#pragma once
// Triangle attention around the starting or the ending node, no residual inside. The serial modules
// are Boltz-2's TriangleAttentionStartingNode and TriangleAttentionEndingNode.
//
//   ending node: x and mask with rows and columns swapped, and y swapped back
//   u = layer_norm(x) ;  b = linear(u)                       x, u (B, N, N, C), b (B, N, N, H)
//   q = linear_q(u) / sqrt(c) ;  k = linear_k(u) ;  v = linear_v(u)           (B, N, N, H c)
//   s[i,h,j,k'] = (q[i,j,h] . k[i,k',h] + inf (mask[i,k'] - 1)) + b[j,k',h]
//   p = softmax of s over k' ;  o[i,j,h] = sum_k' p v[i,k',h]
//   y = linear_o(o sig(linear_g(u)))
//
//   do, dg of the gate ;  dp[i,h,j,k'] = do[i,j,h] . v[i,k',h] ;  dl = sum_k' p dp
//   ds = p (dp - dl) ;  dq = sum_k' ds k / sqrt(c) ;  dk = sum_j ds q ;  dv = sum_j p do
//   db[j,k',h] = sum_i ds ;  du = the adjoints of the five projections ;  dx = norm backward (du)
//
// A row i is a sequence of its own, b is the same for all of them. The mask is one of keys, of any
// weights, and has no gradient; masked positions are queries as others are. Where all keys of a row
// are masked the softmax is over what the large finite constant leaves of the scores: over nothing,
// which is the mean of v, when `infinity` is beyond the precision of T.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/layer_norm.hpp"
#include "dtm/serial/linear.hpp"
#include "dtm/serial/sigmoid_gate.hpp"

namespace dtm::serial {

enum class triangle_node { starting, ending };

/// The projections of an attention; head-major channels, h c + e.
template <class T>
struct attention_projections {
  using value_type = T;

  linear<T> linear_q;  // (H c, C)
  linear<T> linear_k;  // (H c, C)
  linear<T> linear_v;  // (H c, C)
  linear<T> linear_o;  // (C, H c)
  linear<T> linear_g;  // (H c, C)

  attention_projections() = default;
  attention_projections(std::int64_t dim, std::int64_t hidden)
      : linear_q(dim, hidden),
        linear_k(dim, hidden),
        linear_v(dim, hidden),
        linear_o(hidden, dim),
        linear_g(dim, hidden) {}

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    linear_q.each_parameter(f, dotted(prefix, "linear_q"));
    linear_k.each_parameter(f, dotted(prefix, "linear_k"));
    linear_v.each_parameter(f, dotted(prefix, "linear_v"));
    linear_o.each_parameter(f, dotted(prefix, "linear_o"));
    linear_g.each_parameter(f, dotted(prefix, "linear_g"));
  }
};

/// (B, I, J, ..) with I and J swapped.
template <class T>
array<T> transposed(array<T> const& x) {
  extent_list extents = x.extents;
  std::swap(extents[1], extents[2]);
  array<T> result(extents);
  for (std::int64_t b = 0; b < x.extent(0); ++b)
    for (std::int64_t i = 0; i < x.extent(1); ++i)
      for (std::int64_t j = 0; j < x.extent(2); ++j) {
        T const* const from = x.row(b, i, j);
        std::copy(from, from + x.size() / (x.extent(0) * x.extent(1) * x.extent(2)),
                  result.row(b, j, i));
      }
  return result;
}

template <class T>
struct triangle_attention {
  using value_type = T;

  triangle_node node = triangle_node::starting;
  std::int64_t heads = 1;
  T infinity = T(1e9);
  serial::layer_norm<T> layer_norm;
  serial::linear<T> linear;  // (H, C)
  attention_projections<T> mha;

  struct saved {  // rows and columns swapped in the ending node
    array<T> x;
    array<T> u;
    array<T> q;  // divided by sqrt(c)
    array<T> k;
    array<T> v;
    array<T> p;  // (B, N, H, N, N)
    array<T> y;  // gated
    array<T> gate;
  };
  struct result {
    array<T> y;
    saved kept;
  };

  triangle_attention() = default;
  triangle_attention(triangle_node node_, std::int64_t dim, std::int64_t width, std::int64_t heads_)
      : node(node_),
        heads(heads_),
        layer_norm(dim),
        linear(dim, heads_),
        mha(dim, heads_ * width) {}

  std::int64_t dim() const { return layer_norm.channels(); }
  std::int64_t width() const { return mha.linear_q.out() / heads; }

  result forward(array<T> const& x, array<T> const& mask) const {
    expect_rank(x, 4, "triangle_attention: x");
    expect_extents(x, {x.extent(0), x.extent(1), x.extent(1), dim()}, "triangle_attention: x");
    expect_extents(mask, {x.extent(0), x.extent(1), x.extent(1)}, "triangle_attention: mask");
    saved kept;
    kept.x = in_rows(x);
    kept.u = layer_norm.forward(kept.x);
    array<T> const bias = linear.forward(kept.u);
    kept.q = mha.linear_q.forward(kept.u);
    for (T& value : kept.q.values) value /= std::sqrt(T(width()));
    kept.k = mha.linear_k.forward(kept.u);
    kept.v = mha.linear_v.forward(kept.u);
    kept.p = softmax(scores(kept.q, kept.k, in_rows(mask), bias));
    auto gated = sigmoid_gate(attend(kept.p, kept.v), mha.linear_g.forward(kept.u));
    kept.y = std::move(gated.y);
    kept.gate = std::move(gated.gate);
    return {in_rows(mha.linear_o.forward(kept.y)), std::move(kept)};
  }

  /// Adds the parameter gradients and returns dx.
  array<T> backward(saved const& kept, array<T> const& dy, triangle_attention& gradients) const {
    array<T> const d_gated = mha.linear_o.backward(kept.y, in_rows(dy), gradients.mha.linear_o);
    auto const [d_o, dg] = sigmoid_gate_backward(kept.y, kept.gate, d_gated);
    array<T> dq = zeros_like(kept.q), dk = zeros_like(kept.k), dv = zeros_like(kept.v);
    array<T> d_bias(with_channels(kept.u, heads));
    std::int64_t const tokens = kept.x.extent(1);
    for (std::int64_t b = 0; b < kept.x.extent(0); ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t j = 0; j < tokens; ++j) {
            T const* const q = kept.q.row(b, i, j) + h * width();
            T const* const upstream = d_o.row(b, i, j) + h * width();
            T const* const p = kept.p.row(b, i, h, j);
            array<T> dp({tokens});
            T dl = T(0);
            for (std::int64_t other = 0; other < tokens; ++other) {
              dp(other) = dot(upstream, kept.v.row(b, i, other) + h * width());
              dl += p[other] * dp(other);
            }
            for (std::int64_t other = 0; other < tokens; ++other) {
              T const* const k = kept.k.row(b, i, other) + h * width();
              T const ds = p[other] * (dp(other) - dl);
              d_bias(b, j, other, h) += ds;
              for (std::int64_t e = 0; e < width(); ++e) {
                dq.row(b, i, j)[h * width() + e] += ds * k[e] / std::sqrt(T(width()));
                dk.row(b, i, other)[h * width() + e] += ds * q[e];
                dv.row(b, i, other)[h * width() + e] += p[other] * upstream[e];
              }
            }
          }
    array<T> du = linear.backward(kept.u, d_bias, gradients.linear);
    du += mha.linear_q.backward(kept.u, dq, gradients.mha.linear_q);
    du += mha.linear_k.backward(kept.u, dk, gradients.mha.linear_k);
    du += mha.linear_v.backward(kept.u, dv, gradients.mha.linear_v);
    du += mha.linear_g.backward(kept.u, dg, gradients.mha.linear_g);
    return in_rows(layer_norm.backward(kept.x, du, gradients.layer_norm));
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    layer_norm.each_parameter(f, dotted(prefix, "layer_norm"));
    linear.each_parameter(f, dotted(prefix, "linear"));
    mha.each_parameter(f, dotted(prefix, "mha"));
  }

 private:
  /// To where the sequences are rows, and back.
  array<T> in_rows(array<T> const& x) const {
    return node == triangle_node::starting ? x : transposed(x);
  }

  T dot(T const* a, T const* b) const {
    T sum = T(0);
    for (std::int64_t e = 0; e < width(); ++e) sum += a[e] * b[e];
    return sum;
  }

  array<T> scores(array<T> const& q, array<T> const& k, array<T> const& mask,
                  array<T> const& bias) const {
    std::int64_t const batch = q.extent(0), tokens = q.extent(1);
    array<T> s({batch, tokens, heads, tokens, tokens});
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t j = 0; j < tokens; ++j)
            for (std::int64_t other = 0; other < tokens; ++other) {
              T const product = dot(q.row(b, i, j) + h * width(), k.row(b, i, other) + h * width());
              T const masked = product + infinity * (mask(b, i, other) - T(1));
              s(b, i, h, j, other) = masked + bias(b, j, other, h);
            }
    return s;
  }

  /// Over the last dimension.
  static array<T> softmax(array<T> s) {
    for (std::int64_t p = 0; p < s.positions(); ++p) {
      T* const row = s.position(p);
      T const largest = *std::max_element(row, row + s.channels());
      T sum = T(0);
      for (std::int64_t c = 0; c < s.channels(); ++c) sum += row[c] = std::exp(row[c] - largest);
      for (std::int64_t c = 0; c < s.channels(); ++c) row[c] /= sum;
    }
    return s;
  }

  array<T> attend(array<T> const& p, array<T> const& v) const {
    array<T> o = zeros_like(v);
    for (std::int64_t b = 0; b < v.extent(0); ++b)
      for (std::int64_t i = 0; i < v.extent(1); ++i)
        for (std::int64_t h = 0; h < heads; ++h)
          for (std::int64_t j = 0; j < v.extent(2); ++j)
            for (std::int64_t other = 0; other < v.extent(2); ++other)
              for (std::int64_t e = h * width(); e < (h + 1) * width(); ++e)
                o(b, i, j, e) += p(b, i, h, j, other) * v(b, i, other, e);
    return o;
  }
};

}  // namespace dtm::serial
