// Triangle multiplication by channel all-to-all, on every mesh. 8 and 24 channels do not divide by
// 3, 6 and 9 ranks.

#include "triangle_multiplication.hpp"

using namespace dtm;
using dtm::testing::triangle_on_meshes;

TEST_CASE("outgoing, all-to-all, fp64") {
  triangle_on_meshes<double, outgoing, channel_all_to_all, 8>();
}
TEST_CASE("incoming, all-to-all, fp64") {
  triangle_on_meshes<double, incoming, channel_all_to_all, 8>();
}
TEST_CASE("incoming, all-to-all, 24 channels, weights as masks, fp64") {
  testing::parity_plan plan;
  plan.masks = testing::mask_values::weights;
  plan.seed = 3;
  triangle_on_meshes<double, incoming, channel_all_to_all, 24>(plan);
}

TEST_CASE("inference gives the bits of forward, all channels at once") {
  testing::triangle_infers_as_forward<channel_all_to_all, 8>();
}
TEST_CASE("inference gives the bits of forward, by groups of channels") {
  testing::triangle_infers_as_forward<channel_all_to_all,
                                      84>();  // two for 4, 6, 9 ranks, else four
}
TEST_CASE("inference gives the bits of forward, by groups of channels and cannon") {
  testing::triangle_infers_as_forward<cannon, 64>();
}
