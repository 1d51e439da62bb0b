#pragma once
// Distogram head: logits of distance bins from the symmetrised pair representation. The serial
// module is Boltz-2's DistogramModule.
//
//   logits = distogram(z + z^T), last dimension split as (num_distograms, num_bins), bins fastest
//   z (B, N, N, C), logits (B, N, N, D, bins) ;  (z^T)[i,j] = z[j,i]
//   q = dlogits W ;  dz = q + q^T

#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/linear.hpp"

namespace dtm::serial {

template <class T>
struct distogram_module {
  using value_type = T;

  std::int64_t num_distograms = 1;
  linear<T> distogram;  // (D bins, C), with bias

  struct saved {
    array<T> symmetric;  // z + z^T
  };
  struct result {
    array<T> y;
    saved kept;
  };

  distogram_module() = default;
  distogram_module(std::int64_t token_z, std::int64_t num_bins, std::int64_t num_distograms_ = 1)
      : num_distograms(num_distograms_), distogram(token_z, num_distograms_ * num_bins, true) {}

  std::int64_t num_bins() const { return distogram.out() / num_distograms; }

  result forward(array<T> const& z) const {
    expect_rank(z, 4, "distogram_module: z");
    expect_extents(z, {z.extent(0), z.extent(1), z.extent(1), distogram.in()},
                   "distogram_module: z");
    array<T> symmetric = plus_transposed(z);
    array<T> logits = distogram.forward(symmetric);
    logits.extents = {z.extent(0), z.extent(1), z.extent(1), num_distograms, num_bins()};
    return {std::move(logits), {std::move(symmetric)}};
  }

  /// Adds the parameter gradients and returns dz.
  array<T> backward(saved const& kept, array<T> const& dlogits, distogram_module& gradients) const {
    extent_list const& e = kept.symmetric.extents;
    expect_extents(dlogits, {e[0], e[1], e[1], num_distograms, num_bins()},
                   "distogram_module: dlogits");
    array<T> g = dlogits;
    g.extents = {e[0], e[1], e[1], distogram.out()};
    return plus_transposed(distogram.backward(kept.symmetric, g, gradients.distogram));
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    distogram.each_parameter(f, dotted(prefix, "distogram"));
  }

 private:
  static array<T> plus_transposed(array<T> const& z) {
    array<T> sum = zeros_like(z);
    for (std::int64_t b = 0; b < z.extent(0); ++b)
      for (std::int64_t i = 0; i < z.extent(1); ++i)
        for (std::int64_t j = 0; j < z.extent(2); ++j)
          for (std::int64_t c = 0; c < z.extent(3); ++c)
            sum(b, i, j, c) = z(b, i, j, c) + z(b, j, i, c);
    return sum;
  }
};

}  // namespace dtm::serial
