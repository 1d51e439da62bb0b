// The pair block and stacks of it: each against the serial one on every mesh, with and without dropout,
// with activations kept and computed again.

#include "dtm/modules/pairformer_noseq_module.hpp"

#include "dtm/serial/pairformer_noseq_module.hpp"
#include "triangle_attention.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

constexpr std::int64_t channels = 8, heads = 2, width = 4, samples = 2;
constexpr int depth = 2;
constexpr double rate = 0.25;
constexpr kernels::dropout_draw first_draw{.seed = 7, .step = 3, .layer = 5};

auto usual_bound() {
  return extents{bind<batch>(samples), bind<tokens>(attention_tokens())};
}

using layer_type = pairformer_noseq_layer<space_of<double>, channels, heads, width>;
using stack_type = pairformer_noseq_module<space_of<double>, channels, heads, width>;

void set_infinity(auto& layer, double infinity) {
  using value = std::remove_cvref_t<decltype(layer.tri_att_start.infinity)>;
  layer.tri_att_start.infinity = layer.tri_att_end.infinity = value(infinity);
}

auto layer_oracle(double infinity) {
  return serial_oracle([infinity](auto t) {
    serial::pairformer_noseq_layer<decltype(t)> layer(channels, width, heads);
    set_infinity(layer, infinity);
    return layer;
  });
}

/// What a run of a stack gives, whole.
struct whole_run {
  std::vector<serial::array<double>> tensors;  // y, dz, every parameter's gradient
  std::vector<std::string> bytes;              // of this rank's tiles of the first two
  std::int64_t saved = 0, peak = 0;
};

struct drawn_inputs {
  serial::array<double> z, mask, dz;
};

template <class X>
serial::array<double> drawn(X& x, draw_function const& draw, char const* name) {
  fill(x, draw, key_of(11, name));
  return fill_whole(x, draw, key_of(11, name));
}

whole_run run_stack(test_context& ctx, stack_type const& stack, activations policy,
                    stack_dropout const& dropout, drawn_inputs& inputs) {
  stack_type::Z z(ctx, usual_bound()), dz(ctx, usual_bound());
  stack_type::Mask mask(ctx, usual_bound());
  inputs.z = drawn(z, draw_activation, "z");
  inputs.dz = drawn(dz, draw_activation, "dz");
  inputs.mask = drawn(mask, draw_mask_with_diagonal, "mask");
  whole_run run;
  ctx.memory().restart_peak();
  std::int64_t const before = ctx.memory().current_bytes;
  auto result = stack.forward(ctx, z.clone(), mask, policy, dropout);
  run.saved = ctx.memory().current_bytes - before - result.y.bytes();
  CHECK(result.saved.bytes() <= run.saved);  // and the factors
  auto gradients = zero_gradients(ctx, stack);
  auto const dx = stack.backward(ctx, std::move(result.saved), dz.clone(), gradients);
  run.peak = ctx.memory().peak_bytes - before;
  auto const complete_gradients = synchronise(ctx, std::move(gradients));
  run.tensors = {full_tensor(ctx, result.y), full_tensor(ctx, dx)};
  run.bytes = {bytes_of(result.y), bytes_of(dx)};
  each_parameter(complete_gradients, [&](std::string const&, auto const& gradient) {
    run.tensors.push_back(full_tensor(ctx, gradient));
  });
  return run;
}

std::vector<serial::array<double>> run_serially(stack_type const& stack, drawn_inputs const& inputs,
                                                stack_dropout const& dropout) {
  serial::pairformer_noseq_module<double> reference(depth, channels, width, heads);
  std::vector<serial::pair_dropout<double>> factors;
  auto const parameters = serial::named_parameters(reference);
  std::size_t at = 0;
  for (auto const& p : named_parameters(stack)) {
    REQUIRE(parameters[at].name == p.name);
    auto const values = p.values();
    std::copy(values.begin(), values.end(), parameters[at++].values->values.begin());
  }
  REQUIRE(at == parameters.size());
  for (int l = 0; l < depth; ++l) {
    set_infinity(reference.layers[std::size_t(l)], moderate_infinity);
    kernels::dropout_draw draw = dropout.first;
    draw.layer += std::uint32_t(l);
    factors.push_back(dropout.rate == 0 ? serial::pair_dropout<double>{}
                                        : serial::pair_dropout<double>::drawn(
                                              draw, dropout.rate, samples, attention_tokens()));
  }
  auto const result = reference.forward(inputs.z, inputs.mask, factors);
  auto gradients = serial::zero_gradients(reference);
  auto const dz = reference.backward(result.kept, inputs.dz, gradients);
  std::vector<serial::array<double>> all{result.y, dz};
  for (auto const& g : serial::named_parameters(gradients)) all.push_back(*g.values);
  return all;
}

stack_type drawn_stack(test_context& ctx) {
  stack_type stack(ctx, depth);
  each_parameter(stack, [](std::string const& name, auto& parameter) {
    serial::extent_list extents;
    for (int d = 0; d < std::remove_cvref_t<decltype(parameter)>::rank; ++d)
      extents.push_back(parameter.global_extent(d));
    std::vector<double> values;
    for (std::int64_t i = 0; i < parameter.size(); ++i)
      values.push_back(draw_parameter(name, key_of(2, name), extents, std::uint64_t(i)));
    parameter.copy_from_host(values.data());
  });
  for (int l = 0; l < depth; ++l) set_infinity(stack.layers[l], moderate_infinity);
  return stack;
}

std::string mesh_line(test_context& ctx) {
  return "dp=" + std::to_string(ctx.size<dp>()) + " cp0=" + std::to_string(ctx.size<cp0>()) +
         " cp1=" + std::to_string(ctx.size<cp1>());
}

double largest_error(whole_run const& run, std::vector<serial::array<double>> const& expected) {
  REQUIRE(run.tensors.size() == expected.size());
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    error = std::max(error, scaled_error(run.tensors[i], expected[i]));
  return error;
}

}  // namespace

TEST_CASE("a layer of the pair track, fp64") {
  on_meshes([](test_context& ctx) {
    layer_type layer(ctx);
    set_infinity(layer, moderate_infinity);
    auto const report = parity(ctx, layer, layer_oracle(moderate_infinity), usual_bound(),
                               plan_without_empty_rows());
    INFO(report.text());
    CHECK(report.passed());
  });
}

TEST_CASE("a stack with dropout takes the serial numbers, however much it keeps") {
  on_meshes([](test_context& ctx) {
    auto const stack = drawn_stack(ctx);
    stack_dropout const dropout{rate, first_draw};
    drawn_inputs inputs;
    auto const kept = run_stack(ctx, stack, activations::kept, dropout, inputs);
    auto const again = run_stack(ctx, stack, activations::recomputed, dropout, inputs);
    auto const expected = run_serially(stack, inputs, dropout);
    double const tolerance = 1e-11, error = largest_error(kept, expected);
    bool same = kept.bytes == again.bytes;
    for (std::size_t i = 0; i < expected.size(); ++i)
      same = same && kept.tensors[i].values == again.tensors[i].values;
    if (rank() == 0)
      std::printf(
          "pair stack of %d layers, dropout %g, %s: %.1e (%.1e); kept %lld bytes, computed "
          "again %lld; peak %lld and %lld\n",
          depth, rate, mesh_line(ctx).c_str(), error, tolerance, (long long)kept.saved,
          (long long)again.saved, (long long)kept.peak, (long long)again.peak);
    CHECK(error <= tolerance);
    CHECK(same);
    std::int64_t const tile = std::int64_t(sizeof(double)) * samples * attention_tokens() *
                              attention_tokens() / ctx.where().ranks();
    CHECK(again.saved == (depth * channels + 1) * tile);
    CHECK(again.peak < kept.peak);
    // the test can fail: other draws, other numbers
    CHECK(largest_error(run_stack(ctx, stack, activations::kept, {rate, {.seed = 8}}, inputs),
                        expected) > 1e-3);
  });
}

TEST_CASE("an empty stack is the identity") {
  on_meshes([](test_context& ctx) {
    stack_type const stack(ctx, 0);
    stack_type::Z z(ctx, usual_bound());
    stack_type::Mask mask(ctx, usual_bound());
    fill(z, draw_activation, 1);
    fill(mask, draw_binary_mask, 2);
    auto const y = stack.forward(ctx, z.clone(), mask).y;
    CHECK(bytes_of(y) == bytes_of(z));
  });
}

TEST_CASE("a rate of dropout that drops everything is refused") {
  on_meshes([](test_context& ctx) {
    stack_type::Mask mask(ctx, usual_bound());
    CHECK_THROWS_AS(layer_type::dropout::drawn(ctx, first_draw, 1.0, mask), argument_error);
    CHECK_THROWS_AS(layer_type::dropout::drawn(ctx, first_draw, -0.1, mask), argument_error);
  });
}

TEST_CASE("so many rows and columns are dropped as the rate says, the same ones on every mesh") {
  on_meshes([](test_context& ctx) {
    global_extents<2> const global{{samples, 36 * 28}};
    auto const rows = draw_factors<row_factors<space_of<double>>>(ctx, rate, first_draw, global);
    auto const columns =
        draw_factors<column_factors<space_of<double>>>(ctx, rate, first_draw, global);
    auto const expected = serial::dropout_factors<double>(
        serial::dropout_uniform(first_draw, serial::dropped::rows, global[0], global[1]), rate);
    CHECK(full_tensor(ctx, rows).values == expected.values);
    CHECK(full_tensor(ctx, columns).values == expected.values);
    double const count = double(expected.values.size()),
                 dropped = double(std::count(expected.values.begin(), expected.values.end(), 0.0)),
                 deviation = std::sqrt(count * rate * (1 - rate));
    CHECK(std::abs(dropped - count * rate) <= 5 * deviation);
  });
}
