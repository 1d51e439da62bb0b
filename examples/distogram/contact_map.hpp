#pragma once
// The contact map, true beside predicted: what the model has learned, at one glance.
//
// A contact is a distance below the bin boundary next to 8 Angstrom (8.13). Left: 1 or 0. Right:
// the probability that the distogram gives. Dark is a contact; pairs without a known distance are
// light blue in both.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "features.hpp"
#include "png.hpp"

namespace example {

inline constexpr double contact_distance = 8;

/// Bins [0, contact_bins()) are contacts.
inline int contact_bins() {
  double const step = bin_boundary(1) - bin_boundary(0);
  return int(std::lround((contact_distance - first_boundary) / step)) + 1;
}

/// Probability of a contact from the 64 logits of one pair.
template <class T>
double contact_probability(T const* logits) {
  double largest = double(logits[0]);
  for (int bin = 1; bin < distance_bins; ++bin) largest = std::max(largest, double(logits[bin]));
  double contact = 0, all = 0;
  for (int bin = 0; bin < distance_bins; ++bin) {
    double const weight = std::exp(double(logits[bin]) - largest);
    all += weight;
    if (bin < contact_bins()) contact += weight;
  }
  return contact / all;
}

/// Fraction of the true contacts, at least six residues apart in the sequence or in another chain,
/// among the same number of most probable pairs. -1 where there are none.
inline double contact_precision(features const& input, std::vector<double> const& probability) {
  std::vector<std::pair<double, bool>> pairs;  // (-probability, true contact)
  std::size_t contacts = 0;
  for (std::int64_t i = 0; i < input.tokens; ++i) {
    for (std::int64_t j = i + 1; j < input.tokens; ++j) {
      auto const [a, b] = std::pair{std::size_t(i), std::size_t(j)};
      bool const near = input.asym_id[a] == input.asym_id[b] &&
                        std::abs(input.residue_index[a] - input.residue_index[b]) < 6;
      if (near || !pair_counts(input, i, j)) continue;
      bool const contact = distance_bin(pair_distance(input, i, j)) < contact_bins();
      contacts += contact ? 1 : 0;
      pairs.emplace_back(-probability[std::size_t(i * input.padded + j)], contact);
    }
  }
  if (contacts == 0) return -1;
  std::sort(pairs.begin(), pairs.end());
  auto const end = pairs.begin() + std::ptrdiff_t(contacts);
  auto const right =
      std::count_if(pairs.begin(), end, [](auto const& pair) { return pair.second; });
  return double(right) / double(contacts);
}

/// `probability` (padded, padded): predicted contacts. Padding is cut off; a residue is at least 4
/// pixels wide.
inline image contact_map(features const& input, std::vector<double> const& probability) {
  int const residues = int(input.tokens);
  int const scale = std::max(4, 480 / residues), side = residues * scale, margin = 12;
  image picture(2 * side + 3 * margin, side + 2 * margin, 255);
  auto const shade = [](double value) {
    auto const mix = [&](double light, double dark) {
      return std::uint8_t(light + (dark - light) * value);
    };
    return std::array<std::uint8_t, 3>{mix(245, 12), mix(245, 44), mix(240, 92)};
  };
  for (int panel = 0; panel < 2; ++panel) {
    int const left = margin + panel * (side + margin);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        std::int64_t const i = y / scale, j = x / scale;
        std::array<std::uint8_t, 3> colour{200, 215, 235};
        if (pair_counts(input, i, j)) {
          bool const contact = distance_bin(pair_distance(input, i, j)) < contact_bins();
          double const predicted = probability[std::size_t(i * input.padded + j)];
          colour = shade(panel == 0 ? (contact ? 1. : 0.) : std::clamp(predicted, 0., 1.));
        }
        picture.set(left + x, margin + y, colour);
      }
    }
  }
  return picture;
}

}  // namespace example
