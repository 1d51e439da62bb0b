// Peaks, kept bytes and messages of modules: the plan's are the run's to the byte.

#include "dtm/modules/pairformer_noseq_module.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/modules/triangle_multiplication.hpp"
#include "dtm/parameters/gradients.hpp"
#include "plan_and_run.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

// On the host tiles are larger than the workspaces of its loops, which would hide them in a peak.
constexpr std::int64_t token_count = std::is_same_v<device, host> ? 96 : 12;

auto usual_extents() {
  return extents{bind<batch>(2), bind<tokens>(token_count)};
}

template <class Module, class Costs, class... Input>
void forward_and_backward(Costs& costs, std::string const& name, Module& module,
                          Input const&... input) {
  auto& ctx = costs.ctx();
  costs.add(name + ", forward", [&] { return module.forward(ctx, input...); });
  auto gradients = zero_gradients(ctx, module);
  costs.add(name + ", forward and backward", [&] {
    auto made = module.forward(ctx, input...);
    return module.backward(ctx, std::move(made.saved), made.y, gradients);
  });
  costs.add(name + ", synchronise", [&] { return synchronise(ctx, std::move(gradients)); });
}

template <class Costs, class T>
using space_of_costs =
    space<T, grid,
          typename std::remove_cvref_t<decltype(std::declval<Costs&>().ctx())>::device_type>;

template <class module_type, class Costs>
void masked(Costs& costs, std::string const& name) {
  auto& ctx = costs.ctx();
  module_type module(ctx);
  set_to_zero(module);
  auto const x = zero_tensor<typename module_type::X>(ctx, usual_extents());
  auto const mask = zero_tensor<typename module_type::Mask>(ctx, usual_extents());
  forward_and_backward(costs, name, module, x, mask);
  costs.add(name + ", infer", [&] { return module.infer(ctx, x, mask); });
}

template <class Direction, class T, std::int64_t C, class Schedule, class Costs>
void triangle(Costs& costs, std::string const& name) {
  masked<triangle_multiplication<Direction, space_of_costs<Costs, T>, C, Schedule>>(costs, name);
}
template <class Node, class T, class Schedule, class Costs>
void attention(Costs& costs, std::string const& name) {
  masked<triangle_attention<Node, space_of_costs<Costs, T>, 16, 2, 8, Schedule>>(costs, name);
}

/// A stack of layers that keeps one tile a layer.
template <class T, class Costs>
void stack(Costs& costs) {
  auto& ctx = costs.ctx();
  using stack_type = pairformer_noseq_module<space_of_costs<Costs, T>, 16, 2, 8>;
  stack_type module(ctx, 2);
  set_to_zero(module);
  auto const z = zero_tensor<typename stack_type::Z>(ctx, usual_extents());
  auto const mask = zero_tensor<typename stack_type::Mask>(ctx, usual_extents());
  stack_dropout const dropout{0.25, {.seed = 1}};
  for (auto const policy : {activations::kept, activations::recomputed})
    costs.add(policy == activations::kept ? "stack" : "stack, computed again", [&] {
      auto gradients = zero_gradients(ctx, module);
      auto made = module.forward(ctx, z.clone(), mask, policy, dropout);
      return module.backward(ctx, std::move(made.saved), std::move(made.y), gradients);
    });
}

template <class T, class Costs>
void all_modules(Costs& costs) {
  auto& ctx = costs.ctx();
  using S = space<T, grid, typename std::remove_cvref_t<decltype(ctx)>::device_type>;
  triangle<outgoing, T, 16, channel_all_to_all>(costs, "triangle outgoing, all-to-all");
  triangle<incoming, T, 5, channel_all_to_all>(costs, "triangle incoming, all-to-all, uneven");
  // from 64 channels on infer has groups of them
  triangle<outgoing, T, 64, channel_all_to_all>(costs, "triangle outgoing, 64 channels");
  if (ctx.template size<cp0>() == ctx.template size<cp1>()) {
    triangle<outgoing, T, 8, cannon>(costs, "triangle outgoing, cannon");
    triangle<incoming, T, 8, cannon>(costs, "triangle incoming, cannon");
    attention<starting, T, ring>(costs, "attention starting, ring");
    attention<ending, T, ring>(costs, "attention ending, ring");
  }
  attention<starting, T, row_resident>(costs, "attention starting, rows resident");
  attention<ending, T, row_resident>(costs, "attention ending, rows resident");
  stack<T>(costs);
  using transition_type = transition<S, 8, 16>;
  transition_type module(ctx);
  set_to_zero(module);
  auto const x = zero_tensor<pair_tensor<S, c<8>>>(ctx, usual_extents());
  forward_and_backward(costs, "transition", module, x);
  costs.add("transition, infer", [&] { return module.infer(costs.ctx(), x); });
}

/// Sums over so many terms that products of 16 bits need wide results, and devices cut them.
template <class T, class Costs>
void long_product(Costs& costs, std::string const& name) {
  auto& ctx = costs.ctx();
  local::gemm_shape const shape{1, 8, 8, 8192};
  scratch<T> operands(ctx.memory(), 16 * shape.k), result(ctx.memory(), shape.m * shape.n);
  ctx.memory().fill_bytes(operands.data(), 0, std::size_t(operands.size()) * sizeof(T));
  costs.add(name, [&] {
    local::gemm(ctx, shape, operands.data(), operands.data() + 8 * shape.k, result.data());
  });
}

/// Takes what a careless author forgets to plan for.
struct forgetful {
  template <class Context>
  static void run(Context& ctx) {
    scratch<float> const everyone(ctx.memory(), 1000);
    if constexpr (has_values<typename Context::device_type>)
      scratch<float> const forgotten(ctx.memory(), 10);
  }
};

}  // namespace

TEST_CASE("modules in fp32") {
  plan_is_run([](auto& costs) {
    all_modules<float>(costs);
    long_product<float>(costs, "product of 8192 terms");
  });
}

#if DTM_TEST_IS(DTM_TEST_BACKEND) == 1
TEST_CASE("modules in bf16") {
  plan_is_run([](auto& costs) {
    all_modules<bf16>(costs);
    long_product<bf16>(costs, "product of 8192 terms");
  });
}
#else  // kernels of modules are the same; what depends on the type is the product
TEST_CASE("products in bf16") {
  plan_is_run([](auto& costs) { long_product<bf16>(costs, "product of 8192 terms"); });
}
#endif

TEST_CASE("a piece of scratch that a plan forgets is seen") {
  auto const found = plan_against_run(meshes().front(), [](auto& costs) {
    costs.add("forgetful", [&] { forgetful::run(costs.ctx()); });
  });
  REQUIRE(found.size() == 2);
  CHECK_THAT(found.front(),
             contains("forgetful, peak of tensors and scratch: run 4040, plan 4000"));
}
