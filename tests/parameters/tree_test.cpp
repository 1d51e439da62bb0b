// Names and order of parameter trees, the sum of gradients over the mesh, Adam against the serial
// one.

#include "dtm/train/adam.hpp"

#include "small_model.hpp"

#include "dtm/serial/adam.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;

}  // namespace

TEST_CASE("parameters have the serial names, in the serial order, with the serial shapes") {
  auto ctx = small::on_mesh();
  small::model<float> model(ctx, 2);
  auto serial_model = small::serial_model(2);
  auto const serial_parameters = serial::named_parameters(serial_model);
  auto const parameters = named_parameters(model);
  REQUIRE(parameters.size() == serial_parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    CHECK(parameters[p].name == serial_parameters[p].name);
    CHECK(parameters[p].extents == serial_parameters[p].values->extents);
  }
}

TEST_CASE("synchronise sums every gradient over all ranks, whatever the bucket") {
  auto ctx = small::on_mesh();
  small::model<float> model(ctx, 1);
  // integers, so that any order of summation gives the same bits
  auto const term = [](std::string const& name, std::int64_t i, int rank) {
    return float(std::int64_t(1000 * small::value_of(name, i)) + 7 * rank);
  };
  for (std::int64_t const bucket : {std::int64_t(1) << 20, std::int64_t(100), std::int64_t(7)}) {
    auto pending = zero_gradients(ctx, model);
    small::fill_with(pending, [&](std::string const& name, std::int64_t i) {
      return term(name, i, testing::rank());
    });
    ctx.ledger().clear();
    auto const complete = synchronise(ctx, std::move(pending), bucket);
    std::int64_t elements = 0;
    for (auto const& view : named_parameters(complete)) {
      elements += view.count;
      auto const values = view.values();
      for (std::int64_t i = 0; i < view.count; ++i) {
        float expected = 0;
        for (int rank = 0; rank < testing::ranks(); ++rank) expected += term(view.name, i, rank);
        float const found = values[std::size_t(i)];
        if (found != expected)
          FAIL(view.name << "[" << i << "] is " << found << ", not " << expected);
      }
    }
    CHECK(std::int64_t(ctx.ledger().entries.size()) == (elements + bucket - 1) / bucket);
  }
}

TEST_CASE("Adam with groups and clipping takes the serial steps") {
  auto ctx = small::on_mesh();
  small::model<double> model(ctx, 1);
  small::fill(model);
  auto serial_model = small::serial_model(1);
  for (auto& [name, values] : serial::named_parameters(serial_model))
    for (std::int64_t i = 0; i < values->size(); ++i)
      values->values[std::size_t(i)] = small::value_of(name, i);

  adam_options const usual{1e-2, 0.9, 0.99, 1e-8, 0.1, false};
  adam_options const decoupled{3e-2, 0.8, 0.99, 1e-8, 0.2, true};
  auto const is_norm = [](std::string const& name) {
    return name.find("norm") != std::string::npos;
  };
  adam optimiser(ctx, model, usual);
  optimiser.add_group(is_norm, decoupled);
  serial::adam<double> serial_optimiser;
  std::vector<serial::named_array<double>> norms, others;
  for (auto const& each : serial::named_parameters(serial_model))
    (is_norm(each.name) ? norms : others).push_back(each);
  serial_optimiser.add_group(norms, {3e-2, 0.8, 0.99, 1e-8, 0.2, true});
  serial_optimiser.add_group(others, {1e-2, 0.9, 0.99, 1e-8, 0.1, false});

  for (int step = 1; step <= 3; ++step) {
    auto gradients = make_like<complete_gradients_of_t<small::model<double>>>(ctx, model);
    small::fill(gradients, step);
    auto serial_gradients = serial::zero_gradients(serial_model);
    for (auto& [name, values] : serial::named_parameters(serial_gradients))
      for (std::int64_t i = 0; i < values->size(); ++i)
        values->values[std::size_t(i)] = step * small::value_of(name, i);
    auto const named = serial::named_parameters(serial_gradients);
    double const norm = item(clip_gradient_norm(ctx, gradients, 2));
    CHECK(norm == testing::Approx(serial::clip_gradient_norm(named, 2)).epsilon(1e-13));
    optimiser.step(ctx, model, gradients);
    serial_optimiser.step(named);
  }
  double largest = 0;
  auto const expected = serial::named_parameters(serial_model);
  auto const found = named_parameters(model);
  for (std::size_t p = 0; p < found.size(); ++p) {
    auto const values = found[p].values();
    for (std::size_t i = 0; i < values.size(); ++i)
      largest = std::max(largest, std::abs(values[i] - expected[p].values->values[i]));
  }
  INFO("largest difference " << largest << ", tolerance 1e-13");
  CHECK(largest <= 1e-13);
}

TEST_CASE("16-bit parameters follow a master copy: steps below their resolution add up") {
  auto ctx = small::on_mesh();
  small::model<bf16> model(ctx, 1);
  small::fill_with(model, [](auto const&, std::int64_t) { return bf16(1.0f); });
  adam optimiser(ctx, model, adam_options{1e-3});  // a bf16 near 1 moves by 1/256 at least
  auto gradients = make_like<complete_gradients_of_t<small::model<bf16>>>(ctx, model);
  small::fill_with(gradients, [](auto const&, std::int64_t) { return 1.0f; });
  for (int step = 0; step < 100; ++step) optimiser.step(ctx, model, gradients);
  for (auto const& view : named_parameters(model))
    CHECK(float(view.values()[0]) == testing::Approx(0.9).epsilon(0.004));
}
