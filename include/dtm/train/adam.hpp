#pragma once
// Adam with parameter groups and clipping by the global norm, on replicated parameters: every rank
// does the same work on the same numbers, no communication. It accepts complete gradients only,
// what synchronise yields; pending ones are a compile error (law L6).
//
//   t = 1, 2, ...:  g += weight_decay p  (decoupled, as AdamW: p -= rate weight_decay p)
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   p -= rate / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
//
// A step reads and writes the device's memory only and counts itself there, so it may be part of a
// captured graph; learning rates are then the ones of the capture.
//
// Moments are accumulate_t. Where parameters are stored in 16 bits a master copy in accumulate_t
// is kept and rounded after each step: the small steps of training would be lost otherwise.
// Source: torch.optim.Adam.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dtm/backend/local.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/adam.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/kernels/norm.hpp"
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
        groups_{{[](std::string const&) { return true; }, options}},
        steps_(ctx.memory(), 1) {
    set_to_zero(first_);
    set_to_zero(second_);
    ctx.memory().fill_bytes(steps_.data(), 0, sizeof(std::int64_t));
    if constexpr (!std::is_same_v<T, A>) {
      for (auto const& view : named_parameters(module)) {
        master_.emplace_back(ctx.memory(), view.count);
        local::for_each(ctx, view.count,
                        kernels::convert<T, A>{view.data, master_.back().data()});
      }
    }
  }

  /// A group in front of the existing ones.
  void add_group(std::function<bool(std::string const&)> holds, adam_options options) {
    groups_.insert(groups_.begin(), {std::move(holds), options});
  }
  std::vector<group>& groups() { return groups_; }

  template <class Context>
  void step(Context& ctx, Module& module, gradients_type const& gradients) {
    auto const rates = rates_of_groups(ctx);
    auto const parameters = named_parameters(module);
    auto const given = named_parameters(gradients);
    auto const first = named_parameters(first_);
    auto const second = named_parameters(second_);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      std::size_t const g = group_of(parameters[p].name);
      adam_options const& o = groups_[g].options;
      A* const master = std::is_same_v<T, A> ? nullptr : master_[p].data();
      local::for_each(
          ctx, parameters[p].count,
          kernels::adam_update<T>::of(parameters[p].data, master, given[p].data, first[p].data,
                                      second[p].data, rates.data() + 2 * g, o.learning_rate,
                                      o.beta1, o.beta2, o.epsilon, o.weight_decay,
                                      o.decoupled_weight_decay));
    }
  }
  template <class Context, class Got>
  void step(Context&, Module&, Got const&) {
    (void)sizeof(contract::gradients_are_complete<typename gradients_type::space_type,
                                                  typename Got::space_type>);
  }

 private:
  std::size_t group_of(std::string const& name) const {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (groups_[g].holds(name)) return g;
    throw argument_error("dtm adam: no parameter group holds " + name);
  }

  // Counts the step; the two bias corrections of every group.
  template <class Context>
  scratch<A> rates_of_groups(Context& ctx) {
    scratch<A> rates(ctx.memory(), 2 * std::int64_t(groups_.size()));
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      adam_options const& o = groups_[g].options;
      local::for_each(ctx, 1,
                      kernels::adam_rates<A>{steps_.data(), g == 0, o.learning_rate, o.beta1,
                                             o.beta2, rates.data() + 2 * g});
    }
    return rates;
  }

  state_of_t<Module> first_, second_;
  std::vector<group> groups_;
  std::vector<scratch<A>> master_;  // only for 16-bit storage
  scratch<std::int64_t> steps_;
};

/// The norm of a gradient: a number that every rank has.
template <class Gradients>
using gradient_norm_t = tensor<
    typename Gradients::template parameter_element<false>,
    uniform_layout_t<typename Gradients::mesh_type, shape<>, replicate>,
    typename Gradients::space_type::device>;

/// Scales complete gradients by min(1, max_norm / (norm + 1e-6)) and returns the norm they had,
/// over all parameters; item(norm) reads it, waiting for the device. Complete gradients are the
/// same on every rank, and so is the result. Source: torch.nn.utils.clip_grad_norm_.
template <class Context, class Gradients>
gradient_norm_t<Gradients> clip_gradient_norm(Context& ctx, Gradients& gradients,
                                              double max_norm) {
  static_assert(!detail::is_pending<typename Gradients::space_type>::value,
                "dtm gradients: the norm of a pending sum is not the norm of the gradient; "
                "synchronise first");
  using A = typename Gradients::template parameter_element<false>;
  auto const views = named_parameters(gradients);
  gradient_norm_t<Gradients> norm(ctx, extents{});
  scratch<A> sums(ctx.memory(), 2);  // of squares, and the factor that comes of it
  ctx.memory().fill_bytes(sums.data(), 0, sizeof(A));
  for (auto const& view : views) local::sum_of_squares(ctx, view.count, view.data, sums.data());
  local::for_each(ctx, 1,
                  kernels::clip_factor<A>{A(max_norm), sums.data(), sums.data() + 1, norm.data()});
  for (auto const& view : views)
    local::for_each(ctx, view.count, kernels::scale_by<A>{sums.data() + 1, view.data});
  return norm;
}

}  // namespace dtm
