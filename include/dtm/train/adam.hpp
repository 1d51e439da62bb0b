#pragma once
// Adam with parameter groups and clipping by the global norm, on replicated parameters: every rank
// does the same work on the same numbers, no communication. It accepts complete gradients only,
// what synchronise yields; pending ones are a compile error (law L6).
//
//   t = 1, 2, ...:  g += weight_decay p  (decoupled, as AdamW: p -= rate weight_decay p)
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= rate / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//
// Moments are accumulate_t. Where parameters are stored in 16 bits a master copy in accumulate_t
// is kept and rounded after each step: the small steps of training would be lost otherwise.
// Source: torch.optim.Adam.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dtm/core/errors.hpp"
#include "dtm/parameters/gradients.hpp"

namespace dtm {

struct adam_options {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
};

namespace contract {
template <class Expected, class Got>
struct gradients_are_complete {
  static_assert(dtm::detail::false_for<Expected, Got>,
                "dtm contract: an optimiser accepts the complete gradients of its module, which "
                "only synchronise(ctx, std::move(gradients)) yields; Expected and Got stand in "
                "the line that names gradients_are_complete");
};
}  // namespace contract

template <class Module>
class adam {
 public:
  using gradients_type = complete_gradients_of_t<Module>;
  using T = typename Module::element;
  using A = accumulate_t<T>;

  struct group {
    std::function<bool(std::string const&)>
        holds;             // by dotted name; the first group that holds a parameter has it
    adam_options options;  // may be changed between steps
  };

  /// State for every parameter of `module`; one group that holds all of them.
  template <class Context>
  adam(Context& ctx, Module const& module, adam_options options = {})
      : first_(make_like<state_of_t<Module>>(ctx, module)),
        second_(make_like<state_of_t<Module>>(ctx, module)),
        groups_{{[](std::string const&) { return true; }, options}} {
    set_to_zero(first_);
    set_to_zero(second_);
    if constexpr (!std::is_same_v<T, A>) {
      for (auto const& view : named_parameters(module))
        master_.emplace_back(view.data, view.data + view.count);
    }
  }

  /// A group in front of the existing ones.
  void add_group(std::function<bool(std::string const&)> holds, adam_options options) {
    groups_.insert(groups_.begin(), {std::move(holds), options});
  }
  std::vector<group>& groups() { return groups_; }
  std::int64_t steps() const { return steps_; }

  void step(Module& module, gradients_type const& gradients) {
    ++steps_;
    auto const parameters = named_parameters(module);
    auto const given = named_parameters(gradients);
    auto const first = named_parameters(first_);
    auto const second = named_parameters(second_);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      auto const& options = options_of(parameters[p].name);
      if constexpr (std::is_same_v<T, A>) {
        update(parameters[p].data, given[p].data, first[p].data, second[p].data,
               parameters[p].count, options);
      } else {
        auto& master = master_[p];
        update(master.data(), given[p].data, first[p].data, second[p].data, parameters[p].count,
               options);
        for (std::size_t i = 0; i < master.size(); ++i) parameters[p].data[i] = T(master[i]);
      }
    }
  }
  template <class Got>
  void step(Module&, Got const&) {
    (void)sizeof(contract::gradients_are_complete<typename gradients_type::space_type,
                                                  typename Got::space_type>);
  }

 private:
  adam_options const& options_of(std::string const& name) const {
    for (auto const& candidate : groups_)
      if (candidate.holds(name)) return candidate.options;
    throw argument_error("dtm adam: no parameter group holds " + name);
  }

  void update(A* p, A const* gradient, A* m, A* v, std::int64_t count,
              adam_options const& o) const {
    double const t = double(steps_);
    A const rate = A(o.learning_rate / (1 - std::pow(o.beta1, t)));
    A const root = A(std::sqrt(1 - std::pow(o.beta2, t)));
    A const beta1 = A(o.beta1), beta2 = A(o.beta2), keep1 = A(1 - o.beta1), keep2 = A(1 - o.beta2);
    for (std::int64_t i = 0; i < count; ++i) {
      A g = gradient[i];
      if (o.decoupled_weight_decay)
        p[i] -= A(o.learning_rate * o.weight_decay) * p[i];
      else
        g += A(o.weight_decay) * p[i];
      m[i] = beta1 * m[i] + keep1 * g;
      v[i] = beta2 * v[i] + keep2 * g * g;
      p[i] -= rate * m[i] / (std::sqrt(v[i]) / root + A(o.epsilon));
    }
  }

  state_of_t<Module> first_, second_;
  std::vector<group> groups_;
  std::vector<std::vector<A>> master_;  // only for 16-bit storage
  std::int64_t steps_ = 0;
};

/// Scales complete gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm they had,
/// over all parameters. Complete gradients are the same on every rank, and so is the result.
/// Source: torch.nn.utils.clip_grad_norm_.
template <class Gradients>
double clip_gradient_norm(Gradients& gradients, double max_norm) {
  static_assert(!detail::is_pending<typename Gradients::space_type>::value,
                "dtm gradients: the norm of a pending sum is not the norm of the gradient; "
                "synchronise first");
  using A = typename Gradients::template parameter_element<false>;
  auto const views = named_parameters(gradients);
  A total = A(0);
  for (auto const& view : views)
    for (std::int64_t i = 0; i < view.count; ++i) total += view.data[i] * view.data[i];
  A const norm = std::sqrt(total);
  A const factor = std::min(A(1), A(max_norm) / (norm + A(1e-6)));
  for (auto const& view : views)
    for (std::int64_t i = 0; i < view.count; ++i) view.data[i] *= factor;
  return double(norm);
}

}  // namespace dtm
