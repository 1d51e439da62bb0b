#pragma once
// Relative positions: each pair of tokens selects columns of one weight. The serial module is
// Boltz-2's RelativePositionEncoder.
//
//   same chain, same residue, same entity compare asym_id, residue_index, entity_id of i and j
//   position = same chain               ? clamp(residue_i - residue_j + r, 0, 2r) : 2r + 1
//   token    = same chain, same residue ? clamp(token_i - token_j + r, 0, 2r)     : 2r + 1
//   chain    = clamp(sym_i - sym_j + s, 0, 2s), but 2s + 1 where
//              fix_sym_check ? entities differ : chains are the same
//   z[i,j]   = W[:, position] + W[:, n + token] + same_entity W[:, 2n] + W[:, 2n + 1 + chain]
//   features (B, N) integers, n = 2r + 2, W (C, 2n + 1 + 2s + 2), z (B, N, N, C)
//
// With cyclic_pos_enc, and if any token of the whole batch has a cyclic_period > 0, the residue
// distance d becomes d - p round(d / p), where p is the period of token j, or 10000 where it has
// none; that is done in float and rounds half to even, as the published module does. Only W has a
// gradient.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/linear.hpp"

namespace dtm::serial {

/// The token features that relative positions are made of, each (B, N).
struct relative_position_features {
  array<std::int64_t> asym_id;
  array<std::int64_t> residue_index;
  array<std::int64_t> entity_id;
  array<std::int64_t> token_index;
  array<std::int64_t> sym_id;
  array<std::int64_t> cyclic_period;
};

template <class T>
struct relative_position_encoder {
  using value_type = T;

  std::int64_t r_max = 32;
  std::int64_t s_max = 2;
  bool fix_sym_check = true;
  bool cyclic_pos_enc = true;
  linear<T> linear_layer;

  struct saved {
    relative_position_features features;
  };
  struct result {
    array<T> y;
    saved kept;
  };

  relative_position_encoder() = default;
  explicit relative_position_encoder(std::int64_t token_z, bool fix_sym_check_ = true,
                                     bool cyclic_pos_enc_ = true, std::int64_t r_max_ = 32,
                                     std::int64_t s_max_ = 2)
      : r_max(r_max_),
        s_max(s_max_),
        fix_sym_check(fix_sym_check_),
        cyclic_pos_enc(cyclic_pos_enc_),
        linear_layer(2 * (2 * r_max_ + 2) + 1 + (2 * s_max_ + 2), token_z) {}

  result forward(relative_position_features const& features) const {
    check(features);
    std::int64_t const batch = features.asym_id.extent(0);
    std::int64_t const tokens = features.asym_id.extent(1);
    array<T> z({batch, tokens, tokens, linear_layer.out()});
    each_selected_column(features,
                         [&](std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t column) {
                           for (std::int64_t c = 0; c < linear_layer.out(); ++c)
                             z(b, i, j, c) += linear_layer.weight(c, column);
                         });
    return {std::move(z), {features}};
  }

  /// Adds the weight's gradient. The features are integers: there is no cotangent to return.
  void backward(saved const& kept, array<T> const& dz, relative_position_encoder& gradients) const {
    auto const& id = kept.features.asym_id;
    expect_extents(dz, {id.extent(0), id.extent(1), id.extent(1), linear_layer.out()},
                   "relative_position_encoder: dz");
    each_selected_column(kept.features,
                         [&](std::int64_t b, std::int64_t i, std::int64_t j, std::int64_t column) {
                           for (std::int64_t c = 0; c < linear_layer.out(); ++c)
                             gradients.linear_layer.weight(c, column) += dz(b, i, j, c);
                         });
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    linear_layer.each_parameter(f, dotted(prefix, "linear_layer"));
  }

 private:
  static void check(relative_position_features const& f) {
    expect_rank(f.asym_id, 2, "relative_position_encoder: asym_id");
    extent_list const& extents = f.asym_id.extents;
    expect_extents(f.residue_index, extents, "relative_position_encoder: residue_index");
    expect_extents(f.entity_id, extents, "relative_position_encoder: entity_id");
    expect_extents(f.token_index, extents, "relative_position_encoder: token_index");
    expect_extents(f.sym_id, extents, "relative_position_encoder: sym_id");
    expect_extents(f.cyclic_period, extents, "relative_position_encoder: cyclic_period");
  }

  static std::int64_t wrapped(std::int64_t distance, std::int64_t period) {
    float const d = static_cast<float>(distance);
    float const p = static_cast<float>(period > 0 ? period : 10000);
    return static_cast<std::int64_t>(d - p * std::nearbyint(d / p));
  }

  /// Calls f(b, i, j, column) for every column of the weight that pair (i, j) adds up.
  template <class F>
  void each_selected_column(relative_position_features const& x, F&& f) const {
    std::int64_t const batch = x.asym_id.extent(0);
    std::int64_t const tokens = x.asym_id.extent(1);
    bool const wrap =
        cyclic_pos_enc && std::any_of(x.cyclic_period.values.begin(), x.cyclic_period.values.end(),
                                      [](std::int64_t period) { return period > 0; });
    std::int64_t const block = 2 * r_max + 2;
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j) {
          bool const same_chain = x.asym_id(b, i) == x.asym_id(b, j);
          bool const same_residue = x.residue_index(b, i) == x.residue_index(b, j);
          bool const same_entity = x.entity_id(b, i) == x.entity_id(b, j);
          std::int64_t distance = x.residue_index(b, i) - x.residue_index(b, j);
          if (wrap) distance = wrapped(distance, x.cyclic_period(b, j));
          std::int64_t const position = same_chain ? clamped(distance, r_max) : 2 * r_max + 1;
          std::int64_t const token = same_chain && same_residue
                                         ? clamped(x.token_index(b, i) - x.token_index(b, j), r_max)
                                         : 2 * r_max + 1;
          bool const without_chain = fix_sym_check ? !same_entity : same_chain;
          std::int64_t const chain =
              without_chain ? 2 * s_max + 1 : clamped(x.sym_id(b, i) - x.sym_id(b, j), s_max);
          f(b, i, j, position);
          f(b, i, j, block + token);
          if (same_entity) f(b, i, j, 2 * block);
          f(b, i, j, 2 * block + 1 + chain);
        }
  }

  static std::int64_t clamped(std::int64_t difference, std::int64_t limit) {
    return std::clamp<std::int64_t>(difference + limit, 0, 2 * limit);
  }
};

}  // namespace dtm::serial
