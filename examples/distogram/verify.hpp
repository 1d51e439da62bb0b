#pragma once
// --verify: ten steps of the serial program in fp64 beside ten steps of the sharded one, from the
// same start.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "serial_training.hpp"

namespace example {

inline constexpr int verified_steps = 10;
inline constexpr double verified_tolerance = 1e-10;

/// Loss before each step, and the parameters after the last, by name, row-major.
struct trajectory {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> parameters;
};

inline trajectory serial_trajectory(features const& input, training_settings const& settings,
                                    int steps = verified_steps) {
  serial_training<double> training(input, settings);
  trajectory result;
  for (int step = 0; step < steps; ++step) result.losses.push_back(training.step());
  result.parameters = training.parameters();
  return result;
}

struct difference {
  double loss = 0;        // largest |a - b| / |b| over the steps
  double parameters = 0;  // largest |a - b| / max |b| within a parameter
  std::string worst;      // the parameter that attains it

  bool within_tolerance() const {
    return loss <= verified_tolerance && parameters <= verified_tolerance;
  }
};

/// Compares with the reference. What one of the two lacks, what differs in size, and NaN count as
/// infinitely different.
inline difference compare(trajectory const& found, trajectory const& reference) {
  double const infinite = INFINITY;
  difference result;
  auto const relative = [&](double a, double b, double scale) {
    if (a == b) return 0.;
    double const value = std::abs(a - b) / scale;
    return std::isnan(value) ? infinite : value;
  };
  if (found.losses.size() != reference.losses.size() || found.losses.empty())
    result.loss = infinite;
  for (std::size_t step = 0; step < std::min(found.losses.size(), reference.losses.size());
       ++step) {
    double const b = reference.losses[step];
    result.loss = std::max(result.loss, relative(found.losses[step], b, std::abs(b)));
  }
  auto const note = [&](std::string const& name, double value) {
    if (value > result.parameters || result.worst.empty()) {
      result.worst = name;
      result.parameters = value;
    }
  };
  for (auto const& [name, values] : found.parameters) {
    if (!reference.parameters.count(name)) note(name, infinite);
  }
  for (auto const& [name, b] : reference.parameters) {
    auto const a = found.parameters.find(name);
    if (a == found.parameters.end() || a->second.size() != b.size()) {
      note(name, infinite);
      continue;
    }
    double scale = 0, largest = 0;
    for (double const value : b) scale = std::max(scale, std::abs(value));
    for (std::size_t i = 0; i < b.size(); ++i) {
      largest = std::max(largest, relative(a->second[i], b[i], scale));
    }
    note(name, largest);
  }
  return result;
}

}  // namespace example
