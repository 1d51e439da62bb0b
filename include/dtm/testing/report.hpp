#pragma once
// What a parity run found: measured errors with their tolerances, and failures as sentences. No
// test framework is needed:
//
//   auto const report = dtm::testing::parity(ctx, module, oracle, extents{...});
//   REQUIRE(report.passed());          // the report is the same on all ranks
//
// How errors are measured:
//
//   scaled     max |difference| / max |reference| of a tensor; absolute where the reference vanishes
//              in exact arithmetic
//   quantiles  fp32: |sharded - fp64| against |serial fp32 - fp64|, element by element, at 25, 50, 75
//              and 95 %. Sharding may shift a quantile up only by what two samples of n rounding
//              errors differ anyway: with half-normal errors the estimate of a quantile q deviates by
//              sqrt(p (1 - p) / n) / (q f(q)) of it, times sqrt(2) for two samples; four deviations
//              are allowed, and one rounding of a median element as floor. Tensors of less than 100
//              elements have no quantiles worth the name: they are scaled and compared as one sample.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "dtm/serial/array.hpp"

namespace dtm::testing {

/// Which promise a failure is about.
enum class check {
  values,
  parameter_names,
  sharding,
  inputs_unmodified,
  replicas,
  collectives,
  saved_bytes,
  all_zero,
  determinism,
  gradients_add,
  padding,
  differences,
  precision
};
constexpr char const* name_of(check c) {
  constexpr char const* names[] = {
      "values",      "parameter names", "sharding active", "inputs unmodified", "replicas",
      "collectives", "saved bytes",     "nothing is zero", "determinism",       "gradients add",
      "padding",     "differences",     "precision"};
  return names[int(c)];
}

struct failure {
  check about;
  std::string text;
  int rank = 0;  // the lowest rank that found it
};

/// The error of one tensor.
struct comparison {
  std::string name;  // "y", "dx", "fc1.weight"
  double error = 0, tolerance = 0, largest = 0;
};

/// fp32: quantiles of the sharded error / those of the serial one.
struct quantile_shift {
  std::string name;
  std::array<double, 4> ratio{}, allowed{};
  bool upward = false;
};

/// The largest comparison of one kind.
struct worst {
  double error = 0, tolerance = 0;
  std::string name = "";
  void take(comparison const& c) {
    if (!name.empty() && !(c.error / c.tolerance > error / tolerance)) return;
    error = c.error, tolerance = c.tolerance, name = c.name;
  }
};

struct parity_report {
  std::string title;
  std::vector<comparison> outputs, input_gradients, parameter_gradients, differences;
  std::vector<quantile_shift> shifts;
  std::vector<failure> failures;
  std::int64_t saved_bytes = 0;  // of this rank
  std::int64_t forward_peak_bytes = 0,
               backward_peak_bytes = 0;  // above what was there before the call, this rank
  double forward_sent_elements = 0,
         backward_sent_elements = 0;  // mean over ranks, without synchronise

  bool passed() const { return failures.empty(); }
  bool failed(check c) const {
    return std::any_of(failures.begin(), failures.end(),
                       [&](failure const& f) { return f.about == c; });
  }
  double largest_error() const {
    double result = 0;
    for (auto const* list : {&outputs, &input_gradients, &parameter_gradients})
      for (auto const& c : *list) result = std::max(result, c.error);
    return result;
  }
  /// One line of evidence, and one for each failure.
  std::string text() const;
};

namespace detail {

inline std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

inline std::string ratio(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

inline double largest(serial::array<double> const& a) {
  double result = 0;
  for (double value : a.values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace detail

/// Below this a reference is rounding noise: gradients that vanish in exact arithmetic.
inline constexpr double vanishing = 1e-10;

/// max |difference| / max |reference|; infinite where a value is not finite or the extents differ.
inline double scaled_error(serial::array<double> const& value,
                           serial::array<double> const& reference) {
  if (value.extents != reference.extents) return std::numeric_limits<double>::infinity();
  double difference = 0;
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    if (!std::isfinite(value.values[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(value.values[i] - reference.values[i]));
  }
  double const scale = detail::largest(reference);
  return scale > vanishing ? difference / scale : difference;
}

/// Errors of a sharded and of a serial fp32 run against fp64, and the references' sizes.
struct error_sample {
  std::vector<double> sharded, serial, size;

  void add(serial::array<double> const& ours, serial::array<double> const& theirs,
           serial::array<double> const& reference, double scale = 1) {
    for (std::size_t i = 0; i < reference.values.size(); ++i) {
      sharded.push_back(std::abs(ours.values[i] - reference.values[i]) / scale);
      serial.push_back(std::abs(theirs.values[i] - reference.values[i]) / scale);
      size.push_back(std::abs(reference.values[i]) / scale);
    }
  }
};
inline constexpr std::size_t smallest_sample = 100;

/// `independent`: how many of the errors are, where many elements share a rounded factor; 0: all.
inline quantile_shift compare_quantiles(std::string name, error_sample sample,
                                        std::int64_t independent = 0) {
  constexpr double half_ulp = 0x1p-24;
  constexpr std::array<double, 4> level{0.25, 0.5, 0.75, 0.95};
  constexpr std::array<double, 4> deviation{1.79, 1.17, 0.914,
                                            0.951};  // sqrt(p (1-p)) / (q f(q)), half-normal
  for (auto* list : {&sample.sharded, &sample.serial, &sample.size})
    std::sort(list->begin(), list->end());
  std::size_t const n = sample.size.size();
  double const floor = half_ulp * sample.size[n / 2];
  quantile_shift result{std::move(name)};
  for (std::size_t q = 0; q < level.size(); ++q) {
    std::size_t const at = std::min(n - 1, std::size_t(level[q] * double(n)));
    double const ours = sample.sharded[at], theirs = sample.serial[at];
    result.ratio[q] = theirs > 0 ? ours / theirs
                      : ours > 0 ? std::numeric_limits<double>::infinity()
                                 : 1;
    result.allowed[q] = 1 + 4 * std::sqrt(2.0) * deviation[q] /
                                std::sqrt(independent > 0 ? double(independent) : double(n));
    if (!(ours <= theirs * result.allowed[q] + floor)) result.upward = true;
  }
  return result;
}

inline std::string parity_report::text() const {
  auto const part = [](char const* what, std::vector<comparison> const& list) {
    if (list.empty()) return std::string();
    worst largest;
    for (auto const& c : list) largest.take(c);
    return std::string("  ") + what + " " + detail::number(largest.error) + " (" +
           detail::number(largest.tolerance) + ")";
  };
  std::string line = title + part("outputs", outputs) + part("input gradients", input_gradients) +
                     part("parameter gradients", parameter_gradients) +
                     part("differences", differences);
  quantile_shift const* largest = nullptr;
  for (auto const& s : shifts)
    if (largest == nullptr || s.ratio[1] / s.allowed[1] > largest->ratio[1] / largest->allowed[1])
      largest = &s;
  if (largest != nullptr)
    line += "  median error / serial fp32 " + detail::ratio(largest->ratio[1]) + " (" +
            detail::ratio(largest->allowed[1]) + ")";
  line += passed() ? "  ok" : "  FAILED";
  for (auto const& f : failures)
    line += std::string("\n    ") + name_of(f.about) + ", rank " + std::to_string(f.rank) + ": " +
            f.text;
  return line;
}

}  // namespace dtm::testing
