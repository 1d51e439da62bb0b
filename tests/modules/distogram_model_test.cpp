// The distogram model and its optimiser: loss, every parameter's gradient and the parameters after
// three steps with clipping and two parameter groups, against the serial program.

#include "dtm/models/distogram_model.hpp"

#include "dtm/serial/adam.hpp"
#include "dtm/serial/distogram_model.hpp"
#include "dtm/train/adam.hpp"
#include "on_meshes.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

constexpr std::int64_t channels = 8, single_channels = 6, classes = 5, bins = 6,
                       conformer_count = 2;
constexpr int depth = 2, steps = 3;
using model_type =
    distogram_model<space_of<double>, channels, single_channels, pair_schedules<>, classes, bins>;

double one_hot(std::uint64_t key, place const& p) {
  std::uint64_t const count = std::uint64_t(p.extent.back());
  return bits(key, p.linear / count) % count == p.linear % count;
}

double token_features(std::uint64_t, place const& p) {
  std::int64_t const token = p.index[1], chain = token / 5;
  double const values[] = {double(chain), double(token % 5), double(chain % 2),
                           double(token), double(chain / 2), chain == 1 ? 4.0 : 0.0};
  return values[p.index[2]];
}

struct drawn {
  draw_function draw;
  std::uint64_t key;
};
drawn const res_type{one_hot, key_of(1, "res_type")}, features{token_features, 0},
    token_mask{draw_binary_mask, key_of(1, "token_mask")},
    disto_mask{draw_binary_mask, key_of(1, "disto_mask")}, target{one_hot, key_of(1, "target")};

template <class X>
void fill_with(X& x, drawn const& d) {
  fill(x, d.draw, d.key);
}
template <class X>
serial::array<double> whole_of(X const& x, drawn const& d) {
  return fill_whole(x, d.draw, d.key);
}

model_type::batch_type make_batch(test_context& ctx) {
  auto const bound =
      extents{bind<batch>(2), bind<tokens>(tokens_on({1, ctx.size<cp0>(), ctx.size<cp1>()})),
              bind<conformers>(conformer_count)};
  using batch_type = model_type::batch_type;
  batch_type b{{ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}};
  fill_with(b.res_type, res_type);
  fill_with(b.features, features);
  fill_with(b.token_mask, token_mask);
  fill_with(b.disto_mask, disto_mask);
  fill_with(b.target, target);
  return b;
}

serial::distogram_batch<double> whole_batch(model_type::batch_type const& b) {
  auto const all = convert<std::int64_t>(whole_of(b.features, features));
  auto const feature = [&](std::int64_t f) {
    serial::array<std::int64_t> one({all.extent(0), all.extent(1)});
    for (std::int64_t i = 0; i < one.size(); ++i)
      one.values[std::size_t(i)] = all.values[std::size_t(6 * i + f)];
    return one;
  };
  return {whole_of(b.res_type, res_type),
          {feature(0), feature(1), feature(2), feature(3), feature(4), feature(5)},
          whole_of(b.token_mask, token_mask),
          whole_of(b.disto_mask, disto_mask),
          whole_of(b.target, target)};
}

bool is_bias(std::string const& name) {
  return name.ends_with("bias");
}

/// The largest scaled error of a tree's tensors against the serial ones, which have the same order.
template <class Tree>
double largest_error(Tree const& tree, std::vector<serial::named_array<double>> const& expected) {
  double result = 0;
  auto const views = named_parameters(tree);
  REQUIRE(views.size() == expected.size());
  for (std::size_t p = 0; p < views.size(); ++p) {
    CHECK(views[p].name == expected[p].name);
    serial::array<double> values(views[p].extents);
    auto const read = views[p].values();
    std::copy(read.begin(), read.end(), values.values.begin());
    result = std::max(result, scaled_error(values, *expected[p].values));
  }
  return result;
}

}  // namespace

TEST_CASE("the distogram model takes the serial program's steps") {
  on_meshes([](test_context& ctx) {
    model_type model(ctx, depth);
    serial::distogram_model<double> reference(
        {classes, single_channels, channels, depth, bins, true, true});
    auto const parameters = serial::named_parameters(reference);
    std::size_t at = 0;
    each_parameter(model, [&](std::string const& name, auto& parameter) {
      auto& values = *parameters[at++].values;
      REQUIRE(parameters[at - 1].name == name);
      for (std::int64_t i = 0; i < parameter.size(); ++i)
        values.values[std::size_t(i)] =
            draw_parameter(name, key_of(1, name), values.extents, std::uint64_t(i));
      parameter.copy_from_host(values.values.data());
    });

    adam_options const usual{.learning_rate = 1e-2, .epsilon = 1e-4, .weight_decay = 1e-2};
    adam_options const of_biases{.learning_rate = 2e-2, .epsilon = 1e-4};
    adam<model_type> optimiser(ctx, model, usual);
    optimiser.add_group(is_bias, of_biases);
    std::vector<serial::named_array<double>> weights, biases;
    for (auto const& p : parameters) (is_bias(p.name) ? biases : weights).push_back(p);
    serial::adam<double> serial_optimiser(
        weights, {.learning_rate = 1e-2, .epsilon = 1e-4, .weight_decay = 1e-2});
    serial_optimiser.add_group(biases, {.learning_rate = 2e-2, .epsilon = 1e-4});

    auto const sharded_batch = make_batch(ctx);
    auto const serial_batch = whole_batch(sharded_batch);
    double loss_error = 0, gradient_error = 0, first_loss = 0, last_loss = 0;
    for (int step = 0; step < steps; ++step) {
      auto result = model.forward(ctx, sharded_batch);
      model_type::loss_type::Loss d_loss(ctx, extents{});
      double const one = 1;
      d_loss.copy_from_host(&one);
      auto pending = zero_gradients(ctx, model);
      model.backward(ctx, std::move(result.saved), sharded_batch, d_loss, pending);
      auto gradients = synchronise(ctx, std::move(pending));

      auto serial_result = reference.forward(serial_batch);
      auto serial_gradients = serial::zero_gradients(reference);
      reference.backward(serial_result.kept, 1.0, serial_gradients);
      auto named = serial::named_parameters(serial_gradients);
      gradient_error = std::max(gradient_error, largest_error(gradients, named));
      double const loss = full_tensor(ctx, result.loss).values[0];
      loss_error = std::max(loss_error, std::abs(loss - serial_result.loss) / serial_result.loss);
      (step == 0 ? first_loss : last_loss) = loss;

      double const norm = item(clip_gradient_norm(ctx, gradients, 0.5));
      double const serial_norm = serial::clip_gradient_norm(named, 0.5);
      CHECK(norm == Approx(serial_norm).epsilon(1e-12));
      CHECK(norm > 0.5);  // it does clip
      optimiser.step(ctx, model, gradients);
      serial_optimiser.step(named);
    }
    double const parameter_error = largest_error(model, parameters);
    if (rank() == 0)
      std::printf(
          "distogram_model fp64, dp=%d cp0=%d cp1=%d:  loss %.1e  gradients %.1e  parameters "
          "after %d steps %.1e\n",
          ctx.size<dp>(), ctx.size<cp0>(), ctx.size<cp1>(), loss_error, gradient_error, steps,
          parameter_error);
    CHECK(loss_error <= 1e-12);
    CHECK(gradient_error <= 1e-11);  // fifteen modules deep, and Adam's division between the steps
    CHECK(parameter_error <= 1e-11);
    CHECK(last_loss < first_loss);
  });
}
