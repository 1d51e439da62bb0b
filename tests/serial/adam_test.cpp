// Adam and gradient clipping against steps worked out by hand.

#include <cmath>

#include "dtm/serial/adam.hpp"
#include "gradient_check.hpp"

namespace {

using namespace dtm;
using serial::adam;
using serial::adam_options;
using testing::real_array;

struct two_scalars {
  using value_type = double;
  real_array a{{1}, 0.0};
  real_array b{{1}, 0.0};
  template <class F>
  void each_parameter(F&& f, std::string const& = "") {
    f(std::string("a"), a);
    f(std::string("b"), b);
  }
};

/// The parameter after each of the steps with these gradients.
std::vector<double> steps(double start, std::vector<double> const& gradients,
                          adam_options options) {
  real_array p({1}, start);
  real_array g({1});
  adam<double> optimiser({{"p", &p}}, options);
  std::vector<double> result;
  for (double gradient : gradients) {
    g(0) = gradient;
    optimiser.step({{"p", &g}});
    result.push_back(p(0));
  }
  CHECK(optimiser.steps() == static_cast<std::int64_t>(gradients.size()));
  return result;
}

void check_steps(std::vector<double> const& steps, std::vector<double> const& expected) {
  REQUIRE(steps.size() == expected.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(std::abs(steps[i] - expected[i]) <= 1e-14);
  }
}

}  // namespace

TEST_CASE("adam: the first step is the learning rate against the sign") {
  // m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g| after one step, whatever the betas are
  for (double g : {3.0, -0.02}) {
    adam_options options;
    options.learning_rate = 0.25;
    check_steps(steps(1, {g}, options), {1 - 0.25 * g / (std::abs(g) + 1e-8)});
  }
}

TEST_CASE("adam: three steps, computed with 40 digits from torch.optim.Adam's definition") {
  adam_options options;
  options.learning_rate = 0.01;
  SECTION("defaults") {
    check_steps(steps(0.5, {0.1, -0.2, 0.3}, options),
                {0.49000000099999990, 0.49366103603884891, 0.49022862539477431});
  }
  SECTION("other betas and epsilon") {
    options.learning_rate = 0.1;
    options.beta1 = 0.8;
    options.beta2 = 0.95;
    options.epsilon = 1e-3;
    check_steps(steps(-1.25, {2, 0, -1}, options),
                {-1.3499500249875062, -1.4135800346634496, -1.4225996720995168});
  }
  SECTION("weight decay adds to the gradient") {
    options.weight_decay = 0.1;
    check_steps(steps(0.5, {0.1, -0.2, 0.3}, options),
                {0.49000000066666662, 0.49055953499030383, 0.48532932422106293});
  }
  SECTION("decoupled weight decay shrinks the parameter") {
    options.weight_decay = 0.1;
    options.decoupled_weight_decay = true;
    check_steps(steps(0.5, {0.1, -0.2, 0.3}, options),
                {0.48950000099999990, 0.49267153603784891, 0.48874645385773646});
  }
}

TEST_CASE("adam: a gradient of zero leaves the parameter, bit for bit") {
  CHECK(steps(0.3, {0, 0}, {}) == std::vector<double>{0.3, 0.3});
}

TEST_CASE("adam: groups have their own options, gradients are found by name") {
  two_scalars module;
  module.a(0) = 1;
  module.b(0) = 1;
  two_scalars gradients;
  gradients.a(0) = 2;
  gradients.b(0) = -5;
  adam<double> optimiser;
  optimiser.add_group({{"a", &module.a}}, {0.1});
  optimiser.add_group({{"b", &module.b}}, {0.2});
  optimiser.step({{"b", &gradients.b}, {"a", &gradients.a}});
  CHECK(std::abs(module.a(0) - 0.9) < 1e-8);
  CHECK(std::abs(module.b(0) - 1.2) < 1e-8);

  double const a = module.a(0);
  optimiser.groups()[0].options.learning_rate = 0;  // a schedule may change it at any time
  optimiser.step(serial::named_parameters(gradients));
  CHECK(module.a(0) == a);
  CHECK(std::abs(module.b(0) - 1.4) < 1e-8);
}

TEST_CASE("adam: a missing gradient, a wrong one and a repeated parameter are refused") {
  two_scalars module;
  adam<double> optimiser(serial::named_parameters(module));
  real_array wrong({2});
  CHECK_THROWS_WITH(optimiser.step({{"a", &module.a}}), "adam: parameter b has no gradient");
  CHECK_THROWS_AS(optimiser.step({{"a", &wrong}, {"b", &module.b}}), layout_error);
  CHECK_THROWS_WITH(optimiser.add_group({{"a", &module.a}}), "adam: parameter a is given twice");
  CHECK(optimiser.steps() == 0);
}

TEST_CASE("clipping: the norm runs over all gradients") {
  two_scalars gradients;
  gradients.a(0) = 3;
  gradients.b(0) = -4;
  auto const list = serial::named_parameters(gradients);

  CHECK(serial::clip_gradient_norm(list, 5.1) == 5);
  CHECK(gradients.a(0) == 3);  // below the limit nothing changes
  CHECK(gradients.b(0) == -4);

  CHECK(serial::clip_gradient_norm(list, 0.5) == 5);
  CHECK(gradients.a(0) == 3 * (0.5 / (5 + 1e-6)));
  CHECK(gradients.b(0) == -4 * (0.5 / (5 + 1e-6)));

  // torch's rule scales a little even exactly at the limit
  gradients.a(0) = 3;
  gradients.b(0) = -4;
  CHECK(serial::clip_gradient_norm(list, 5) == 5);
  CHECK(gradients.a(0) == 3 * (5 / (5 + 1e-6)));
}
