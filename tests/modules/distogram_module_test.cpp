// Distogram head: logits of z + z^T, one and two distograms.

#include "dtm/modules/distogram_module.hpp"

#include "dtm/serial/distogram_module.hpp"
#include "on_meshes.hpp"

namespace {

using namespace dtm;
using testing::space_of;

template <class T, std::int64_t Distograms>
void run(testing::parity_plan const& plan = {}) {
  testing::serial_oracle const oracle(
      [](auto t) { return serial::distogram_module<decltype(t)>(8, 5, Distograms); });
  testing::parity_on_meshes<distogram_module<space_of<T>, 8, 5, Distograms>>(
      oracle, testing::usual_extents(), plan);
}

}  // namespace

TEST_CASE("distogram head, fp64") {
  run<double, 2>();
}
TEST_CASE("distogram head, fp32") {
  run<float, 1>();
}
TEST_CASE("distogram head, bf16") {
  testing::parity_plan plan;
  plan.roundings = 3;  // z + z^T, the product, the bias
  run<bf16, 1>(plan);
}
