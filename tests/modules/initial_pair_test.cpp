// Initial pair: z[i,j] = W1 s[i] + W2 s[j]; ds comes as a pending sum over the column axis.

#include "dtm/modules/initial_pair.hpp"

#include "dtm/serial/initial_pair.hpp"
#include "on_meshes.hpp"

namespace {

using namespace dtm;
using testing::space_of;

testing::serial_oracle const oracle([](auto t) {
  return serial::initial_pair<decltype(t)>(10, 8);
});

}  // namespace

TEST_CASE("initial pair, fp64") {
  testing::parity_on_meshes<initial_pair<space_of<double>, 10, 8>>(oracle,
                                                                      testing::usual_extents(), {});
}
TEST_CASE("initial pair, fp32") {
  testing::parity_on_meshes<initial_pair<space_of<float>, 10, 8>>(oracle,
                                                                     testing::usual_extents(), {});
}
TEST_CASE("initial pair, bf16") {
  testing::parity_plan plan;
  plan.roundings = 5;  // ds: the sums over rows and columns, two terms of ds, their sum
  testing::parity_on_meshes<initial_pair<space_of<bf16>, 10, 8>>(oracle,
                                                                    testing::usual_extents(), plan);
}
