#pragma once
// Central finite differences in double for the serial modules. The scalar that is differentiated is
// sum(dy y) for a random upstream dy. Each parameter and each differentiable input is checked
// element by element and along a random direction.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dtm/serial/parameters.hpp"
#include "support/catch.hpp"

namespace dtm::testing {

using serial::named_array;
using real_array = serial::array<double>;

/// Uniform numbers that are the same with every standard library.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  void fill(real_array& a, double low = -1, double high = 1) {
    for (double& value : a.values) value = uniform(low, high);
  }
  real_array filled(serial::extent_list extents, double low = -1, double high = 1) {
    real_array a(std::move(extents));
    fill(a, low, high);
    return a;
  }
  serial::array<std::int64_t> integers(serial::extent_list extents, std::int64_t low,
                                       std::int64_t high) {
    serial::array<std::int64_t> a(std::move(extents));
    for (auto& value : a.values) value = integer(low, high);
    return a;
  }
  /// Random parameters, those that start at zero or one included.
  template <class Module>
  void fill_parameters(Module& module) {
    module.each_parameter([this](std::string const&, real_array& values) { fill(values); });
  }

 private:
  std::mt19937_64 engine_;
};

inline double dot(real_array const& a, real_array const& b) {
  serial::expect_extents(b, a.extents, "dot: b");
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

inline double largest(real_array const& a) {
  double result = 0;
  for (double value : a.values) result = std::max(result, std::abs(value));
  return result;
}

/// Derivative of f at 0 from central differences of four points, error of order step^4. Curvature
/// differs by orders of magnitude between modules, hence several steps: of two neighbouring
/// estimates that agree best the one of the smaller step is taken. The analytic gradient has no say
/// in it.
template <class F>
double central_difference(F&& f) {
  double previous = 0;
  double result = 0;
  double best = std::numeric_limits<double>::infinity();
  for (double step = 2e-3; step > 1e-5; step /= 4) {
    double const estimate = (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step);
    if (step < 2e-3 && std::abs(estimate - previous) < best) {
      best = std::abs(estimate - previous);
      result = estimate;
    }
    previous = estimate;
  }
  return result;
}

struct gradient_errors {
  double elements = 0;   // largest over all elements, scaled by the largest gradient
  double direction = 0;  // along a random direction of length 1, scaled by the gradient's length
};

/// Compares an analytic gradient of loss() with differences in `values`, which are restored.
inline gradient_errors compare_gradient(std::function<double()> const& loss, real_array& values,
                                        real_array const& gradient, random_source& random) {
  REQUIRE(gradient.extents == values.extents);
  gradient_errors errors;
  double const scale = largest(gradient) > 1e-10 ? largest(gradient) : 1;
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    double const before = values.values[i];
    double const difference = central_difference([&](double step) {
      values.values[i] = before + step;
      return loss();
    });
    values.values[i] = before;
    errors.elements = std::max(errors.elements, std::abs(difference - gradient.values[i]) / scale);
  }
  real_array const before = values;
  real_array direction = random.filled(values.extents);
  double const length = std::sqrt(dot(direction, direction));
  for (double& value : direction.values) value /= length;
  double const difference = central_difference([&](double step) {
    for (std::size_t i = 0; i < values.values.size(); ++i)
      values.values[i] = before.values[i] + step * direction.values[i];
    return loss();
  });
  values = before;
  double const size = std::sqrt(dot(gradient, gradient));
  errors.direction = std::abs(difference - dot(gradient, direction)) / (size > 1e-10 ? size : 1);
  return errors;
}

constexpr double gradient_tolerance = 1e-8;

/// Checks a module whose parameters are set. forward() gives y of the module and the inputs as they
/// are, backward(dy, gradients) adds the parameter gradients and returns the cotangents of the
/// inputs in order.
template <class Module, class Forward, class Backward>
void check_gradients(std::string const& name, Module& module,
                     std::vector<named_array<double>> const& inputs, Forward&& forward,
                     Backward&& backward, std::uint64_t seed = 7) {
  random_source random(seed);
  real_array const dy = random.filled(forward().extents);
  auto const loss = [&] { return dot(dy, forward()); };

  Module gradients = serial::zero_gradients(module);
  std::vector<real_array> const cotangents = backward(dy, gradients);
  REQUIRE(cotangents.size() == inputs.size());

  auto const check = [&](std::string const& tensor, real_array& values,
                         real_array const& gradient) {
    auto const errors = compare_gradient(loss, values, gradient, random);
    std::printf("%-40s %-34s elements %.1e  direction %.1e  tolerance %.0e\n", name.c_str(),
                tensor.c_str(), errors.elements, errors.direction, gradient_tolerance);
    INFO(name << " " << tensor);
    CHECK(errors.elements <= gradient_tolerance);
    CHECK(errors.direction <= gradient_tolerance);
  };
  auto const parameters = serial::named_parameters(module);
  auto const of_parameters = serial::named_parameters(gradients);
  for (std::size_t p = 0; p < parameters.size(); ++p)
    check(parameters[p].name, *parameters[p].values, *of_parameters[p].values);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check(inputs[i].name, *inputs[i].values, cotangents[i]);

  // parameter gradients add to what is there, cotangents do not
  Module twice = gradients;
  std::vector<real_array> const again = backward(dy, twice);
  for (std::size_t i = 0; i < inputs.size(); ++i) CHECK(again[i].values == cotangents[i].values);
  auto const of_twice = serial::named_parameters(twice);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    real_array const& once = *of_parameters[p].values;
    double difference = 0;
    for (std::size_t i = 0; i < once.values.size(); ++i)
      difference =
          std::max(difference, std::abs(of_twice[p].values->values[i] - 2 * once.values[i]));
    INFO(name << " " << parameters[p].name << " added twice");
    CHECK(difference <= 1e-13 * std::max(largest(once), 1.0));
  }
}

/// For functions without parameters.
struct no_parameters {
  using value_type = double;
  template <class F>
  void each_parameter(F&&, std::string const& = "") {}
};

}  // namespace dtm::testing
