// Transition: y = (silu(LN(x) W1^T) * LN(x) W2^T) W3^T, no message in either direction.

#include "dtm/modules/transition.hpp"

#include "dtm/serial/transition.hpp"
#include "on_meshes.hpp"

namespace {

using namespace dtm;
using testing::space_of;

testing::serial_oracle const oracle([](auto t) { return serial::transition<decltype(t)>(8, 24); });

template <class T>
using pair_transition = transition<space_of<T>, 8, 24>;
template <class T>
using single_transition = transition<space_of<T>, 8, 24, single_tensor<space_of<T>, c<8>>>;

}  // namespace

TEST_CASE("transition of a pair, fp64") {
  testing::parity_on_meshes<pair_transition<double>>(oracle, testing::usual_extents(), {});
}
TEST_CASE("transition of a pair, fp32") {
  testing::parity_on_meshes<pair_transition<float>>(oracle, testing::usual_extents(), {});
}
TEST_CASE(
    "transition of a single, fp64") {  // the same on every cp1: cotangents are pending sums there
  testing::parity_on_meshes<single_transition<double>>(oracle, testing::usual_extents(), {});
}
TEST_CASE("transition of a pair, bf16") {
  // stored on the way to dx: u, h1, da, dh1, dh2, du and dx; to y: u, h1, h2, their product and y
  testing::parity_plan plan;
  plan.roundings = 7;
  testing::parity_on_meshes<pair_transition<bf16>>(oracle, testing::usual_extents(), plan);
}
TEST_CASE("transition: inference gives the bits of forward") {
  for (auto const& sizes : testing::meshes()) {
    testing::test_context ctx(testing::world(), sizes, 0, testing::test_options());
    pair_transition<float> module(ctx);
    each_parameter(module, [](std::string const& name, auto& parameter) {
      testing::fill(parameter, testing::draw_activation, testing::key_of(3, name));
    });
    pair_tensor<space_of<float>, c<8>> x(ctx, testing::extents_on(sizes));
    testing::fill(x, testing::draw_activation, 5);
    CHECK(testing::bytes_of(module.infer(ctx, x)) == testing::bytes_of(module.forward(ctx, x).y));
  }
}
