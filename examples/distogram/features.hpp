#pragma once
// What the model sees of a structure, padded, and what it is to predict.
//
// Everything is a function of global token indices, so that each rank fills its own tile: functions
// of pairs take a range of rows and one of columns and return their values row by row. Padded
// tokens have mask 0 and an all-zero one-hot; they form a chain and a molecule of their own.

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <dtm/core/errors.hpp>

#include "structure.hpp"

namespace example {

inline constexpr int distance_bins = 64;
inline constexpr double first_boundary = 2,
                        last_boundary = 22;  // Angstrom; 63 boundaries, evenly spaced

inline double bin_boundary(int which) {
  return first_boundary + which * ((last_boundary - first_boundary) / (distance_bins - 2));
}

/// The number of boundaries that `distance` exceeds: 0 to 63.
inline int distance_bin(double distance) {
  int result = 0;
  while (result < distance_bins - 1 && distance > bin_boundary(result)) ++result;
  return result;
}

/// Global indices [begin, end).
struct range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

struct features {
  std::int64_t tokens = 0;  // without padding
  std::int64_t padded = 0;  // N of the model
  std::vector<std::int64_t> token_index, residue_index, asym_id, entity_id, sym_id;  // (N)
  std::vector<int> residue_class;                 // (N), -1 where padded
  std::vector<double> token_mask, resolved_mask;  // (N), 0 or 1
  std::vector<std::array<double, 3>> position;    // (N)

  range all() const { return {0, padded}; }
};

/// What the number of tokens is a multiple of on a cp0 x cp1 mesh: whole rows of pairs are dealt to all
/// of its ranks.
inline std::int64_t token_multiple(int cp0, int cp1) {
  return std::int64_t(cp0) * cp1;
}

/// Pads the tokens of `protein` to a multiple of `multiple`. Refuses fewer tokens than that: some
/// rank would hold nothing but padding.
inline features make_features(structure const& protein, std::int64_t multiple) {
  features result;
  result.tokens = std::int64_t(protein.tokens.size());
  if (result.tokens < multiple) {
    throw dtm::argument_error("the structure has " + std::to_string(result.tokens) +
                              " residues, fewer than the " + std::to_string(multiple) +
                              " that the mesh needs; use a smaller mesh");
  }
  result.padded = (result.tokens + multiple - 1) / multiple * multiple;
  std::int64_t entities = 0;
  for (token const& each : protein.tokens) entities = std::max(entities, each.entity_id + 1);
  token padding;
  padding.residue_class = -1;
  padding.asym_id = std::int64_t(protein.chains.size());
  padding.entity_id = entities;
  for (std::int64_t index = 0; index < result.padded; ++index) {
    bool const real = index < result.tokens;
    token const& each = real ? protein.tokens[std::size_t(index)] : padding;
    result.token_index.push_back(index);
    result.residue_index.push_back(each.residue_index);
    result.asym_id.push_back(each.asym_id);
    result.entity_id.push_back(each.entity_id);
    result.sym_id.push_back(each.sym_id);
    result.residue_class.push_back(each.residue_class);
    result.token_mask.push_back(real ? 1 : 0);
    result.resolved_mask.push_back(real && each.resolved ? 1 : 0);
    result.position.push_back(each.position);
  }
  return result;
}

/// (rows, 33): one-hot residue classes, all zero where padded.
template <class T>
std::vector<T> residue_one_hot(features const& input, range rows) {
  std::vector<T> result(std::size_t(rows.size()) * residue_classes.size(), T(0));
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    int const which = input.residue_class[std::size_t(i)];
    if (which >= 0)
      result[std::size_t(i - rows.begin) * residue_classes.size() + std::size_t(which)] = T(1);
  }
  return result;
}

/// (rows, columns): product of the token masks.
template <class T>
std::vector<T> pair_mask(features const& input, range rows, range columns) {
  std::vector<T> result;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      result.push_back(T(input.token_mask[std::size_t(i)] * input.token_mask[std::size_t(j)]));
    }
  }
  return result;
}

/// Whether the loss counts the pair: both resolved, and not a token with itself.
inline bool pair_counts(features const& input, std::int64_t i, std::int64_t j) {
  return i != j && input.resolved_mask[std::size_t(i)] != 0 &&
         input.resolved_mask[std::size_t(j)] != 0;
}

inline double pair_distance(features const& input, std::int64_t i, std::int64_t j) {
  auto const& a = input.position[std::size_t(i)];
  auto const& b = input.position[std::size_t(j)];
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// (rows, columns): bin of the distance; 0 where either is not resolved (the loss masks it).
inline std::vector<std::uint8_t> distance_targets(features const& input, range rows,
                                                  range columns) {
  std::vector<std::uint8_t> result;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      bool const counts = pair_counts(input, i, j);
      result.push_back(std::uint8_t(counts ? distance_bin(pair_distance(input, i, j)) : 0));
    }
  }
  return result;
}

/// (rows, columns, 64): one-hot of distance_targets, all zero where the pair does not count.
template <class T>
std::vector<T> distance_one_hot(features const& input, range rows, range columns) {
  std::vector<T> result(std::size_t(rows.size() * columns.size()) * distance_bins, T(0));
  std::size_t position = 0;
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = columns.begin; j < columns.end; ++j, position += distance_bins) {
      if (!pair_counts(input, i, j)) continue;
      result[position + std::size_t(distance_bin(pair_distance(input, i, j)))] = T(1);
    }
  }
  return result;
}

/// Smallest loss of a model that predicts the same distribution for every pair: the entropy of the
/// histogram of the bins, over the pairs that count, with the loss's own denominator.
inline double best_constant_loss(features const& input) {
  std::array<double, distance_bins> histogram{};
  double pairs = 0;
  for (std::int64_t i = 0; i < input.padded; ++i) {
    for (std::int64_t j = 0; j < input.padded; ++j) {
      if (!pair_counts(input, i, j)) continue;
      histogram[std::size_t(distance_bin(pair_distance(input, i, j)))] += 1;
      pairs += 1;
    }
  }
  double sum = 0;
  for (double const count : histogram) sum -= count > 0 ? count * std::log(count / pairs) : 0;
  return sum / (1e-5 + pairs);
}

}  // namespace example
