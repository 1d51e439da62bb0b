#pragma once
// The first pair representation from single features, an outer sum. In Boltz-2 these are the layers
// z_init_1 and z_init_2 of the model itself, so the names carry no prefix of their own.
//
//   z[i,j] = z_init_1(s)[i] + z_init_2(s)[j]           s (B, N, Cs), z (B, N, N, Cz), no bias
//   row[i] = sum_j dz[i,j] ;  col[j] = sum_i dz[i,j] ;  ds = row W1 + col W2

#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/linear.hpp"

namespace dtm::serial {

template <class T>
struct initial_pair {
  using value_type = T;

  linear<T> z_init_1;  // (Cz, Cs)
  linear<T> z_init_2;  // (Cz, Cs)

  struct saved {
    array<T> s;
  };
  struct result {
    array<T> y;
    saved kept;
  };

  initial_pair() = default;
  initial_pair(std::int64_t token_s, std::int64_t token_z)
      : z_init_1(token_s, token_z), z_init_2(token_s, token_z) {}

  result forward(array<T> const& s) const {
    expect_rank(s, 3, "initial_pair: s");
    array<T> const row = z_init_1.forward(s);
    array<T> const col = z_init_2.forward(s);
    std::int64_t const tokens = s.extent(1);
    array<T> z({s.extent(0), tokens, tokens, z_init_1.out()});
    for (std::int64_t b = 0; b < s.extent(0); ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          for (std::int64_t c = 0; c < z_init_1.out(); ++c)
            z(b, i, j, c) = row(b, i, c) + col(b, j, c);
    return {std::move(z), {s}};
  }

  /// Adds the parameter gradients and returns ds.
  array<T> backward(saved const& kept, array<T> const& dz, initial_pair& gradients) const {
    std::int64_t const batch = kept.s.extent(0);
    std::int64_t const tokens = kept.s.extent(1);
    expect_extents(dz, {batch, tokens, tokens, z_init_1.out()}, "initial_pair: dz");
    array<T> row({batch, tokens, z_init_1.out()});
    array<T> col({batch, tokens, z_init_1.out()});
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          for (std::int64_t c = 0; c < z_init_1.out(); ++c) {
            row(b, i, c) += dz(b, i, j, c);
            col(b, j, c) += dz(b, i, j, c);
          }
    array<T> ds = z_init_1.backward(kept.s, row, gradients.z_init_1);
    ds += z_init_2.backward(kept.s, col, gradients.z_init_2);
    return ds;
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    z_init_1.each_parameter(f, dotted(prefix, "z_init_1"));
    z_init_2.each_parameter(f, dotted(prefix, "z_init_2"));
  }
};

}  // namespace dtm::serial
