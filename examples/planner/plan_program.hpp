#pragma once
// Definition of plan_all(): what every rank is asked to do. Modules and model are the ones that run; only
// the device of their space says that nothing is there.

#include <algorithm>
#include <utility>

#include <dtm/models/distogram_model.hpp>
#include <dtm/planned.hpp>
#include <dtm/train/adam.hpp>

#include "plan.hpp"

namespace example {

using namespace dtm;
using grid = mesh<dp, cp0, cp1>;

/// What the modules and the model cost one rank.
template <class Context, class Space, std::int64_t C>
class rank_plan {
 public:
  rank_plan(Context& ctx, options const& chosen) : ctx_(ctx), chosen_(chosen) {}

  plan made() {
    pieces();
    if (chosen_.model) model();
    return std::move(plan_);
  }

 private:
  template <class Work>
  void add(std::string subject, std::string work, Work const& run) {
    plan_.rows.push_back({std::move(subject), std::move(work), measure(ctx_, run)});
  }

  /// The result of forward stands for its cotangent, which is as large. Gradients of parameters are
  /// there before.
  template <class Module, class... Input>
  void both_ways(Module const& module, Input const&... input) {
    char const* const name = Module::tag::name;
    add(name, "forward", [&] { return module.forward(ctx_, input...); });
    auto gradients = zero_gradients(ctx_, module);
    add(name, "forward and backward", [&] {
      auto made = module.forward(ctx_, input...);
      module.backward(ctx_, std::move(made.saved), made.y, gradients);
    });
  }

  template <class Module>
  void triangle() {
    Module const module(ctx_);
    auto const x = pair();
    mask_type const mask(ctx_, bound());
    both_ways(module, x, mask);
    add(Module::tag::name, "infer", [&] { return module.infer(ctx_, x, mask); });
  }

  void pieces() {
    using first_type = initial_pair<Space, C, C>;
    both_ways(first_type(ctx_), typename first_type::S(ctx_, bound()));
    using relative_type = relative_position_encoder<Space, C>;
    both_ways(relative_type(ctx_), typename relative_type::Features(ctx_, bound()));
    using layer = typename distogram_model<Space, C>::block_type;
    triangle<typename layer::mul_out>();
    triangle<typename layer::mul_in>();
    triangle<typename layer::att_start>();
    triangle<typename layer::att_end>();
    both_ways(transition<Space, C, 4 * C>(ctx_), pair());
    both_ways(distogram_module<Space, C>(ctx_), pair());
    loss();
  }

  void loss() {
    using module_type = distogram_loss<Space>;
    module_type const module{};
    typename module_type::Pred const logits(ctx_, bound());
    typename module_type::Target const target(ctx_, bound());
    typename module_type::Mask const mask(ctx_, bound());
    char const* const name = module_type::tag::name;
    add(name, "forward", [&] { return module.forward(ctx_, logits, target, mask); });
    add(name, "forward and backward", [&] {
      auto made = module.forward(ctx_, logits, target, mask);
      return module.backward(ctx_, std::move(made.saved), made.loss);
    });
  }

  void model() {
    using model_type = distogram_model<Space, C>;
    using batch_type = typename model_type::batch_type;
    model_type model(ctx_, chosen_.blocks);
    adam<model_type> optimiser(ctx_, model);
    batch_type const batch{
        {ctx_, bound()}, {ctx_, bound()}, {ctx_, bound()}, {ctx_, bound()}, {ctx_, bound()}};
    ctx_.memory().restart_peak();
    add("model", "forward", [&] { return model.forward(ctx_, batch); });
    auto const backward = [&] {
      auto made = model.forward(ctx_, batch);
      auto gradients = zero_gradients(ctx_, model);
      model.backward(ctx_, std::move(made.saved), batch, made.loss, gradients);
      return gradients;
    };
    add("model", "forward and backward", backward);
    add("model", "training step", [&] {
      auto complete = synchronise(ctx_, backward());
      clip_gradient_norm(ctx_, complete, 1.0);
      optimiser.step(ctx_, model, complete);
    });
    plan_.most_bytes = ctx_.memory().together.peak_bytes;
  }

  using pair_type = pair_tensor<Space, c<C>>;
  using mask_type = pair_tensor<Space>;
  pair_type pair() { return pair_type(ctx_, bound()); }
  auto bound() const {
    return extents{bind<batch>(chosen_.dp), bind<tokens>(chosen_.padded()), bind<conformers>(1)};
  }

  Context& ctx_;
  options const& chosen_;
  plan plan_;
};

/// Of each number the most over the ranks.
inline plan worst_of(std::vector<plan> const& ranks) {
  plan worst = ranks.front();
  auto const raise = [](std::int64_t& most, std::int64_t one) { most = std::max(most, one); };
  for (auto const& rank : ranks) {
    raise(worst.most_bytes, rank.most_bytes);
    for (std::size_t i = 0; i < worst.rows.size(); ++i) {
      auto& most = worst.rows[i].cost;
      auto const& one = rank.rows[i].cost;
      raise(most.peak.peak_bytes, one.peak.peak_bytes);
      raise(most.peak.communication_bytes, one.peak.communication_bytes);
      raise(most.peak.together_bytes, one.peak.together_bytes);
      raise(most.kept_bytes, one.kept_bytes);
      for (std::size_t v = 0; v < most.volumes.size(); ++v)
        raise(most.volumes[v].sent_bytes, one.volumes[v].sent_bytes);
    }
  }
  return worst;
}

template <class Device, class T, std::int64_t C>
plan plan_channels(options const& chosen) {
  using context_type = context<planned<Device>, grid>;
  using space_type = space<T, grid, planned<Device>>;
  return worst_of(comm::plan_ranks(chosen.ranks(), [&](comm::planned_world& world) {
    context_type ctx(world, {chosen.dp, chosen.cp0, chosen.cp1});
    return rank_plan<context_type, space_type, C>(ctx, chosen).made();
  }));
}

template <class Device, class T>
plan plan_all(options const& chosen) {
  static_assert(compiled_channels[0] == 64 && compiled_channels[1] == 128);
  return chosen.channels == 64 ? plan_channels<Device, T, 64>(chosen)
                               : plan_channels<Device, T, 128>(chosen);
}

}  // namespace example
