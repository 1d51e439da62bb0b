#pragma once
// Triangle multiplication, outgoing and incoming, no residual inside. The serial modules are
// Boltz-2's TriangleMultiplicationOutgoing and TriangleMultiplicationIncoming.
//
//   u  = norm_in(x) ;  sg = sig(g_in(u)) ;  t = p_in(u) sg mask         x, u (B, N, N, D), t (..,
//   2D) a  = t[.., :D] ;   b = t[.., D:]                                    mask (B, N, N), any
//   weights outgoing:  o[i,j,d] = sum_k a[i,k,d] b[j,k,d] incoming:  o[i,j,d] = sum_k a[k,i,d]
//   b[k,j,d] w  = norm_out(o) ; e = sig(g_out(u)) ;  y = p_out(w) e
//
//   dg = dy y (1 - e) ;  dw = (dy e) Wp_out ;  do = norm_out backward (dw)
//   outgoing:  da[i,k,d] = sum_j do[i,j,d] b[j,k,d] ;  db[j,k,d] = sum_i do[i,j,d] a[i,k,d]
//   incoming:  da[k,i,d] = sum_j do[i,j,d] b[k,j,d] ;  db[k,j,d] = sum_i do[i,j,d] a[k,i,d]
//   dt = [da | db] ;  dp = dt sg mask ;  dh = dt t (1 - sg)
//   du = dg Wg_out + dp Wp_in + dh Wg_in ;  dx = norm_in backward (du)
//
// The mask enters a and b once each and has no gradient; masked positions of y are not zeroed.

#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/layer_norm.hpp"
#include "dtm/serial/linear.hpp"
#include "dtm/serial/sigmoid_gate.hpp"

namespace dtm::serial {

enum class triangle_direction { outgoing, incoming };

template <class T>
struct triangle_multiplication {
  using value_type = T;

  triangle_direction direction = triangle_direction::outgoing;
  layer_norm<T> norm_in;
  linear<T> p_in;  // (2D, D)
  linear<T> g_in;  // (2D, D)
  layer_norm<T> norm_out;
  linear<T> p_out;  // (D, D)
  linear<T> g_out;  // (D, D)

  struct saved {
    array<T> x;
    array<T> mask;
    array<T> u;
    array<T> t;   // gated and masked, (B, N, N, 2D)
    array<T> sg;  // the gate of t
    array<T> o;
    array<T> w;
    array<T> y;
    array<T> e;  // the gate of y
  };
  struct result {
    array<T> y;
    saved kept;
  };

  triangle_multiplication() = default;
  triangle_multiplication(triangle_direction direction_, std::int64_t dim)
      : direction(direction_),
        norm_in(dim),
        p_in(dim, 2 * dim),
        g_in(dim, 2 * dim),
        norm_out(dim),
        p_out(dim, dim),
        g_out(dim, dim) {}

  std::int64_t dim() const { return norm_in.channels(); }

  result forward(array<T> const& x, array<T> const& mask) const {
    expect_rank(x, 4, "triangle_multiplication: x");
    expect_extents(x, {x.extent(0), x.extent(1), x.extent(1), dim()}, "triangle_multiplication: x");
    expect_extents(mask, {x.extent(0), x.extent(1), x.extent(1)}, "triangle_multiplication: mask");
    array<T> u = norm_in.forward(x);
    auto [t, sg] = sigmoid_gate(p_in.forward(u), g_in.forward(u));
    multiply_by_mask(t, mask);
    array<T> o = contract(t);
    array<T> w = norm_out.forward(o);
    auto [y, e] = sigmoid_gate(p_out.forward(w), g_out.forward(u));
    array<T> output = y;
    return {std::move(output),
            {x, mask, std::move(u), std::move(t), std::move(sg), std::move(o), std::move(w),
             std::move(y), std::move(e)}};
  }

  /// Adds the parameter gradients and returns dx.
  array<T> backward(saved const& kept, array<T> const& dy,
                    triangle_multiplication& gradients) const {
    auto const [dy0, dg] = sigmoid_gate_backward(kept.y, kept.e, dy);
    array<T> du = g_out.backward(kept.u, dg, gradients.g_out);
    array<T> const dw = p_out.backward(kept.w, dy0, gradients.p_out);
    array<T> const d_o = norm_out.backward(kept.o, dw, gradients.norm_out);
    array<T> const dt = contract_backward(kept.t, d_o);
    // t already holds the projection, the gate and the mask once each
    auto [dp, dh] = sigmoid_gate_backward(kept.t, kept.sg, dt);
    multiply_by_mask(dp, kept.mask);
    du += p_in.backward(kept.u, dp, gradients.p_in);
    du += g_in.backward(kept.u, dh, gradients.g_in);
    return norm_in.backward(kept.x, du, gradients.norm_in);
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    norm_in.each_parameter(f, dotted(prefix, "norm_in"));
    p_in.each_parameter(f, dotted(prefix, "p_in"));
    g_in.each_parameter(f, dotted(prefix, "g_in"));
    norm_out.each_parameter(f, dotted(prefix, "norm_out"));
    p_out.each_parameter(f, dotted(prefix, "p_out"));
    g_out.each_parameter(f, dotted(prefix, "g_out"));
  }

 private:
  bool outgoing() const { return direction == triangle_direction::outgoing; }

  static void multiply_by_mask(array<T>& t, array<T> const& mask) {
    for (std::int64_t p = 0; p < t.positions(); ++p)
      for (std::int64_t c = 0; c < t.channels(); ++c)
        t.position(p)[c] *= mask.values[static_cast<std::size_t>(p)];
  }

  /// The operand (a without, b with the channel offset D) that edge (end, k) of the triangle reads:
  /// t[end, k] outgoing, t[k, end] incoming.
  template <class Array>
  auto* edge(Array& t, std::int64_t batch, std::int64_t end, std::int64_t k) const {
    return outgoing() ? t.row(batch, end, k) : t.row(batch, k, end);
  }

  array<T> contract(array<T> const& t) const {
    std::int64_t const batch = t.extent(0);
    std::int64_t const tokens = t.extent(1);
    array<T> o({batch, tokens, tokens, dim()});
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          for (std::int64_t k = 0; k < tokens; ++k) {
            T const* a = edge(t, n, i, k);
            T const* b = edge(t, n, j, k) + dim();
            T* sum = o.row(n, i, j);
            for (std::int64_t d = 0; d < dim(); ++d) sum[d] += a[d] * b[d];
          }
    return o;
  }

  array<T> contract_backward(array<T> const& t, array<T> const& d_o) const {
    std::int64_t const batch = t.extent(0);
    std::int64_t const tokens = t.extent(1);
    array<T> dt = zeros_like(t);
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          for (std::int64_t k = 0; k < tokens; ++k) {
            T const* a = edge(t, n, i, k);
            T const* b = edge(t, n, j, k) + dim();
            T* da = edge(dt, n, i, k);
            T* db = edge(dt, n, j, k) + dim();
            T const* g = d_o.row(n, i, j);
            for (std::int64_t d = 0; d < dim(); ++d) {
              da[d] += g[d] * b[d];
              db[d] += g[d] * a[d];
            }
          }
    return dt;
  }
};

}  // namespace dtm::serial
