#pragma once
// A layer of the Pairformer without its sequence track. The serial module is Boltz-2's
// PairformerNoSeqLayer.
//
//   z += D1 tri_mul_out(z)          D1, D2, D3 factors of rows, D4 of columns; ones where nothing is
//   z += D2 tri_mul_in(z)           dropped
//   z += D3 tri_att_start(z)
//   z += D4 tri_att_end(z)
//   z += transition_z(z)
//
//   dz += transition_z backward (dz), tri_att_end backward (D4 dz), .. in reverse order
//
// The update of a dropped row is exactly zero. The mask (B, N, N) has no gradient and zeroes nothing
// of z. A row's and a column's factors are told apart by their extents, see serial/dropout.hpp.

#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/dropout.hpp"
#include "dtm/serial/transition.hpp"
#include "dtm/serial/triangle_attention.hpp"
#include "dtm/serial/triangle_multiplication.hpp"

namespace dtm::serial {

/// Factors of the updates of one layer, absent where nothing is dropped.
template <class T>
struct pair_dropout {
  array<T> tri_mul_out;    // (B, N, 1, 1)
  array<T> tri_mul_in;     // (B, N, 1, 1)
  array<T> tri_att_start;  // (B, N, 1, 1)
  array<T> tri_att_end;    // (B, 1, N, 1)

  /// The four draws of a layer; `first` is the first of them.
  static pair_dropout drawn(dropout_draw const& first, double rate, std::int64_t batch,
                            std::int64_t tokens) {
    auto const factors = [&](std::uint32_t which, dropped what) {
      dropout_draw draw = first;
      draw.which = which;
      return dropout_factors<T>(dropout_uniform(draw, what, batch, tokens), rate);
    };
    return {factors(0, dropped::rows), factors(1, dropped::rows), factors(2, dropped::rows),
            factors(3, dropped::columns)};
  }
};

template <class T>
struct pairformer_noseq_layer {
  using value_type = T;

  triangle_multiplication<T> tri_mul_out;
  triangle_multiplication<T> tri_mul_in;
  triangle_attention<T> tri_att_start;
  triangle_attention<T> tri_att_end;
  transition<T> transition_z;

  struct saved {
    typename triangle_multiplication<T>::saved tri_mul_out;
    typename triangle_multiplication<T>::saved tri_mul_in;
    typename triangle_attention<T>::saved tri_att_start;
    typename triangle_attention<T>::saved tri_att_end;
    typename transition<T>::saved transition_z;
    pair_dropout<T> factors;
  };
  struct result {
    array<T> y;
    saved kept;
  };

  pairformer_noseq_layer() = default;
  /// token_z channels; width and heads of the attention.
  pairformer_noseq_layer(std::int64_t token_z, std::int64_t width, std::int64_t heads)
      : tri_mul_out(triangle_direction::outgoing, token_z),
        tri_mul_in(triangle_direction::incoming, token_z),
        tri_att_start(triangle_node::starting, token_z, width, heads),
        tri_att_end(triangle_node::ending, token_z, width, heads),
        transition_z(token_z, 4 * token_z) {}

  result forward(array<T> z, array<T> const& mask, pair_dropout<T> const& factors = {}) const {
    auto a = tri_mul_out.forward(z, mask);
    z += dropout(std::move(a.y), factors.tri_mul_out);
    auto b = tri_mul_in.forward(z, mask);
    z += dropout(std::move(b.y), factors.tri_mul_in);
    auto c = tri_att_start.forward(z, mask);
    z += dropout(std::move(c.y), factors.tri_att_start);
    auto d = tri_att_end.forward(z, mask);
    z += dropout(std::move(d.y), factors.tri_att_end);
    auto e = transition_z.forward(z);
    z += e.y;
    return {std::move(z),
            {std::move(a.kept), std::move(b.kept), std::move(c.kept), std::move(d.kept),
             std::move(e.kept), factors}};
  }

  /// Adds the parameter gradients and returns dz.
  array<T> backward(saved const& kept, array<T> dz, pairformer_noseq_layer& gradients) const {
    dz += transition_z.backward(kept.transition_z, dz, gradients.transition_z);
    dz += tri_att_end.backward(kept.tri_att_end, dropout(dz, kept.factors.tri_att_end),
                               gradients.tri_att_end);
    dz += tri_att_start.backward(kept.tri_att_start, dropout(dz, kept.factors.tri_att_start),
                                 gradients.tri_att_start);
    dz += tri_mul_in.backward(kept.tri_mul_in, dropout(dz, kept.factors.tri_mul_in),
                              gradients.tri_mul_in);
    dz += tri_mul_out.backward(kept.tri_mul_out, dropout(dz, kept.factors.tri_mul_out),
                               gradients.tri_mul_out);
    return dz;
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    tri_mul_out.each_parameter(f, dotted(prefix, "tri_mul_out"));
    tri_mul_in.each_parameter(f, dotted(prefix, "tri_mul_in"));
    tri_att_start.each_parameter(f, dotted(prefix, "tri_att_start"));
    tri_att_end.each_parameter(f, dotted(prefix, "tri_att_end"));
    transition_z.each_parameter(f, dotted(prefix, "transition_z"));
  }
};

}  // namespace dtm::serial
