#pragma once
// Kernels of the relative position encoder: which four columns of the weight a pair of tokens adds
// up, the sum of them, and its adjoint. Feature order: asym_id, residue_index, entity_id,
// token_index, sym_id, cyclic_period.

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"

namespace dtm::kernels {

/// columns[pair, 0..3]: position, token, same entity (or -1), chain.
struct relative_position_columns {
  std::int64_t const* row;     // [batch, rows, 6]
  std::int64_t const* column;  // [batch, columns, 6]
  std::int64_t rows, columns, r_max, s_max;
  bool wrap, fix_sym_check;
  std::int32_t* selected;

  DTM_HD static std::int64_t clamped(std::int64_t difference, std::int64_t limit) {
    std::int64_t const shifted = difference + limit;
    return shifted < 0 ? 0 : shifted > 2 * limit ? 2 * limit : shifted;
  }
  // In float and to the nearest even, as the published module rounds.
  DTM_HD static std::int64_t wrapped(std::int64_t distance, std::int64_t period) {
    float const d = float(distance), p = float(period > 0 ? period : 10000);
    return std::int64_t(d - p * std::nearbyint(d / p));
  }
  DTM_HD void operator()(std::int64_t pair) const {
    std::int64_t const j = pair % columns, i = pair / columns % rows, b = pair / (columns * rows);
    std::int64_t const* const x = row + (b * rows + i) * 6;
    std::int64_t const* const y = column + (b * columns + j) * 6;
    bool const same_chain = x[0] == y[0], same_residue = x[1] == y[1], same_entity = x[2] == y[2];
    std::int64_t distance = x[1] - y[1];
    if (wrap) distance = wrapped(distance, y[5]);
    std::int64_t const block = 2 * r_max + 2;
    bool const without_chain = fix_sym_check ? !same_entity : same_chain;
    std::int32_t* const out = selected + pair * 4;
    out[0] = std::int32_t(same_chain ? clamped(distance, r_max) : 2 * r_max + 1);
    out[1] = std::int32_t(
        block + (same_chain && same_residue ? clamped(x[3] - y[3], r_max) : 2 * r_max + 1));
    out[2] = same_entity ? std::int32_t(2 * block) : -1;
    out[3] =
        std::int32_t(2 * block + 1 + (without_chain ? 2 * s_max + 1 : clamped(x[4] - y[4], s_max)));
  }
};

/// z[pair, ch] = sum of weight[ch, column] over the selected columns.
template <class T>
struct add_selected_columns {
  std::int32_t const* selected;
  T const* weight;
  std::int64_t width, channels;
  T* z;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    std::int32_t const* const chosen = selected + i / channels * 4;
    T const* const row = weight + i % channels * width;
    A total = A(row[chosen[0]]) + A(row[chosen[1]]);
    if (chosen[2] >= 0) total += A(row[chosen[2]]);
    z[i] = T(total + A(row[chosen[3]]));
  }
};

/// gradient[ch, column] += dz[pair, ch] for every selected column, in pair order: one index a
/// channel, no races.
template <class T>
struct scatter_selected_columns {
  std::int32_t const* selected;
  T const* dz;
  std::int64_t pairs, width, channels;
  accumulate_t<T>* gradient;
  DTM_HD void operator()(std::int64_t ch) const {
    using A = accumulate_t<T>;
    A* const row = gradient + ch * width;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      std::int32_t const* const chosen = selected + pair * 4;
      A const g = A(dz[pair * channels + ch]);
      for (int k = 0; k < 4; ++k)
        if (chosen[k] >= 0) row[chosen[k]] += g;
    }
  }
};

}  // namespace dtm::kernels
