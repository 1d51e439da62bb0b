#pragma once
// Adam as torch.optim.Adam does it, with parameter groups, and gradient clipping by the global norm
// as torch.nn.utils.clip_grad_norm_ does it.
//
//   step t = 1, 2, ..:  g += weight_decay p       (decoupled, as in AdamW: p -= rate weight_decay
//   p) m = beta1 m + (1 - beta1) g ;  v = beta2 v + (1 - beta2) g^2 p -= rate / (1 - beta1^t)  m /
//   (sqrt(v) / sqrt(1 - beta2^t) + epsilon)

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtm/serial/parameters.hpp"

namespace dtm::serial {

struct adam_options {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
};

/// The optimiser looks at parameters through their names and addresses: the module that owns them
/// must stay where it is.
template <class T>
class adam {
 public:
  struct state {
    named_array<T> parameter;
    array<T> first_moment;
    array<T> second_moment;
  };
  struct group {
    adam_options options;  // may be changed between steps, for a schedule of the learning rate
    std::vector<state> members;
  };

  adam() = default;
  explicit adam(std::vector<named_array<T>> const& parameters, adam_options options = {}) {
    add_group(parameters, options);
  }

  void add_group(std::vector<named_array<T>> const& parameters, adam_options options = {}) {
    group added{options, {}};
    for (auto const& parameter : parameters) {
      for (group const& other : groups_) refuse_repeated(other, parameter.name);
      refuse_repeated(added, parameter.name);
      added.members.push_back(
          {parameter, zeros_like(*parameter.values), zeros_like(*parameter.values)});
    }
    groups_.push_back(std::move(added));
  }

  std::vector<group>& groups() { return groups_; }
  std::int64_t steps() const { return steps_; }

  /// One step. Every parameter finds its gradient by name; any order will do. Nothing has changed
  /// when an argument_error or a layout_error says that one is missing or has other extents.
  void step(std::vector<named_array<T>> const& gradients) {
    for (group const& g : groups_)
      for (state const& s : g.members) gradient_of(s, gradients);
    ++steps_;
    for (group& g : groups_)
      for (state& s : g.members) update(s, gradient_of(s, gradients), g.options);
  }

 private:
  static void refuse_repeated(group const& g, std::string const& name) {
    for (state const& s : g.members)
      if (s.parameter.name == name)
        throw argument_error("adam: parameter " + name + " is given twice");
  }

  static array<T> const& gradient_of(state const& s, std::vector<named_array<T>> const& gradients) {
    auto const found = std::find_if(gradients.begin(), gradients.end(), [&](auto const& gradient) {
      return gradient.name == s.parameter.name;
    });
    if (found == gradients.end())
      throw argument_error("adam: parameter " + s.parameter.name + " has no gradient");
    expect_extents(*found->values, s.parameter.values->extents, s.parameter.name.c_str());
    return *found->values;
  }

  void update(state& s, array<T> const& gradient, adam_options const& o) const {
    double const t = static_cast<double>(steps_);
    T const rate = static_cast<T>(o.learning_rate / (1 - std::pow(o.beta1, t)));
    T const root = static_cast<T>(std::sqrt(1 - std::pow(o.beta2, t)));
    T const beta1 = static_cast<T>(o.beta1);
    T const beta2 = static_cast<T>(o.beta2);
    T const keep1 = static_cast<T>(1 - o.beta1);
    T const keep2 = static_cast<T>(1 - o.beta2);
    for (std::size_t i = 0; i < gradient.values.size(); ++i) {
      T& p = s.parameter.values->values[i];
      T& m = s.first_moment.values[i];
      T& v = s.second_moment.values[i];
      T g = gradient.values[i];
      if (o.decoupled_weight_decay)
        p -= static_cast<T>(o.learning_rate * o.weight_decay) * p;
      else
        g += static_cast<T>(o.weight_decay) * p;
      m = beta1 * m + keep1 * g;
      v = beta2 * v + keep2 * g * g;
      p -= rate * m / (std::sqrt(v) / root + static_cast<T>(o.epsilon));
    }
  }

  std::vector<group> groups_;
  std::int64_t steps_ = 0;
};

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm they had, the
/// square root of the sum of squares over all of them.
template <class T>
T clip_gradient_norm(std::vector<named_array<T>> const& gradients, double max_norm) {
  T sum = T(0);
  for (auto const& gradient : gradients)
    for (T g : gradient.values->values) sum += g * g;
  T const norm = std::sqrt(sum);
  T const factor = std::min(T(1), static_cast<T>(max_norm) / (norm + T(1e-6)));
  for (auto const& gradient : gradients)
    for (T& g : gradient.values->values) g *= factor;
  return norm;
}

}  // namespace dtm::serial
