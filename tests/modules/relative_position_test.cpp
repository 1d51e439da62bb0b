// Relative positions: integer features choose columns of one weight. Small limits, so that 12
// tokens reach the clamps.

#include "oracles.hpp"

namespace {

using namespace dtm;
using testing::space_of;

constexpr std::int64_t limit = 3, chain_limit = 1, channels = 5;

template <class T>
void run(relative_position_options options, bool cyclic) {
  testing::parity_plan plan;
  plan.title = std::string("relative_position_encoder, ") +
               (options.fix_sym_check ? "fixed" : "released") + " symmetry check, " +
               (cyclic ? "a cyclic chain" : "no cyclic chain");
  plan.draws["features"] = testing::position_features(cyclic);
  plan.roundings = 4;  // z: four columns are added
  testing::parity_on_meshes<
      relative_position_encoder<space_of<T>, channels, limit, chain_limit>>(
      testing::position_oracle<channels, limit, chain_limit>(options), testing::usual_extents(),
      plan, options);
}

}  // namespace

TEST_CASE("relative positions, fp64") {
  run<double>({true, true}, true);
  run<double>({true, true}, false);
  run<double>({false, true}, true);
}
TEST_CASE("relative positions, fp32") {
  run<float>({true, true}, true);
}
TEST_CASE("relative positions, bf16") {
  run<bf16>({true, true}, true);
}
