#pragma once
// Dropout of whole rows or columns of a pair's update, by a factor for each (row) or (column):
//
//   keep = (uniform >= rate) ;  factor = keep / (1 - rate) ;  y = factor x        x, y (B, N, N, C)
//   dx = factor dy
//
// The factors of rows are (B, N, 1, 1), shared along the second token axis and the channels, those of
// columns (B, 1, N, 1). The serial function is Boltz-2's get_dropout_mask. Uniform numbers are given,
// or drawn as functions of what is drawn and of the index in (B, N) (law L12): the same ones in
// whatever element type and on whatever mesh a program computes, and when a layer is computed again.

#include <cstddef>
#include <cstdint>
#include <string>

#include "dtm/kernels/random.hpp"
#include "dtm/serial/array.hpp"

namespace dtm::serial {

enum class dropped { rows, columns };

using kernels::dropout_draw;

/// In [0, 1), multiples of 2^-24: (B, N, 1, 1) or (B, 1, N, 1).
inline array<double> dropout_uniform(dropout_draw const& draw, dropped what, std::int64_t batch,
                                     std::int64_t tokens) {
  array<double> result(what == dropped::rows ? extent_list{batch, tokens, 1, 1}
                                             : extent_list{batch, 1, tokens, 1});
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values[i] = double(kernels::uniform<float>::of(draw.stream().at(i)));
  return result;
}

/// Of uniform numbers, factors. Throws a layout_error unless 0 <= rate < 1.
template <class T>
array<T> dropout_factors(array<double> const& uniform, double rate) {
  if (!(rate >= 0 && rate < 1))
    throw layout_error("dropout: the rate is " + std::to_string(rate) +
                       ", it must be at least 0 and below 1: what is kept is divided by 1 - rate");
  array<T> factors(uniform.extents);
  for (std::size_t i = 0; i < factors.values.size(); ++i)
    factors.values[i] = uniform.values[i] >= rate ? T(1 / (1 - rate)) : T(0);
  return factors;
}

/// x (B, N, N, C) times factors of rows or of columns. Absent factors are ones.
template <class T>
array<T> dropout(array<T> x, array<T> const& factors) {
  if (factors.absent()) return x;
  expect_rank(x, 4, "dropout: x");
  std::int64_t const batch = x.extent(0), tokens = x.extent(1);
  bool const rows = factors.extents == extent_list{batch, tokens, 1, 1};
  expect_extents(factors,
                 rows ? extent_list{batch, tokens, 1, 1} : extent_list{batch, 1, tokens, 1},
                 "dropout: factors");
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < tokens; ++i)
      for (std::int64_t j = 0; j < x.extent(2); ++j)
        for (std::int64_t c = 0; c < x.channels(); ++c)
          x(b, i, j, c) *= rows ? factors(b, i, 0, 0) : factors(b, 0, j, 0);
  return x;
}

}  // namespace dtm::serial
