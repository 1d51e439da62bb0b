#pragma once
// Kernels of the relative position encoder: which four columns of the weight a pair of tokens adds
// up, the sum of them, and its adjoint. Feature order: asym_id, residue_index, entity_id,
// token_index, sym_id, cyclic_period. On a device the adjoint goes in chunks of pairs, see
// relative_position_blocks.hpp.

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// flag = 1 where x[i * stride] is positive for an i, 0 where for none: one index. Reads `count`;
/// memory.
struct any_positive {
  std::int64_t const* x;
  std::int64_t count, stride;
  std::int32_t* flag;
  DTM_HD void operator()(std::int64_t) const {
    std::int32_t found = 0;
    for (std::int64_t i = 0; i < count; ++i)
      if (x[i * stride] > 0) found = 1;
    *flag = found;
  }
};

/// columns[pair, 0..3]: position, token, same entity (or -1), chain. Distances wrap around where
/// `wrap` is true and the flag, where there is one, is not 0. Writes 16 bytes a pair; 40 integer
/// operations; memory.
struct relative_position_columns {
  std::int64_t const* row;     // [batch, rows, 6]
  std::int64_t const* column;  // [batch, columns, 6]
  std::int64_t rows, columns, r_max, s_max;
  bool wrap, fix_sym_check;
  std::int32_t* selected;
  std::int32_t const* wrap_flag = nullptr;  // in device memory: what the host does not know

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
    if (wrap && (wrap_flag == nullptr || *wrap_flag != 0)) distance = wrapped(distance, y[5]);
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

/// z[pair, ch] = sum of weight[ch, column] over the selected columns. Writes 1 (weights and columns
/// come from cache); 3 flops; memory.
template <class T>
struct add_selected_columns {
  std::int32_t const* selected;
  T const* weight;
  std::int64_t width, channels;
  T* z;
  static constexpr int neighbours = vector_length<T>;
  DTM_HD T value(std::int32_t const* chosen, std::int64_t ch) const {
    using A = accumulate_t<T>;
    T const* const row = weight + ch * width;
    A total = A(row[chosen[0]]) + A(row[chosen[1]]);
    if (chosen[2] >= 0) total += A(row[chosen[2]]);
    return T(total + A(row[chosen[3]]));
  }
  DTM_HD void operator()(std::int64_t i) const {
    z[i] = value(selected + i / channels * 4, i % channels);
  }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    std::int64_t const pair = i / channels, ch = i - pair * channels;
    vector<T, neighbours> out;
    for (int n = 0; n < neighbours; ++n) out[n] = value(selected + pair * 4, ch + n);
    block.store(z + i, out);
  }
  bool may_vector() const { return channels % neighbours == 0 && are_aligned<neighbours>(z); }
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

#include "dtm/kernels/relative_position_blocks.hpp"  // how devices run these
