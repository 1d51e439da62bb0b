// Triangle multiplication with fp32 and bf16 elements.

#include "triangle_multiplication.hpp"

using namespace dtm;
using dtm::testing::triangle_on_meshes;

TEST_CASE("outgoing, all-to-all, fp32") {
  triangle_on_meshes<float, outgoing, channel_all_to_all, 24>();
}
TEST_CASE("outgoing, cannon, fp32") {
  triangle_on_meshes<float, outgoing, cannon, 8>();
}
TEST_CASE("incoming, all-to-all, bf16") {
  // stored on the way to dx: u, t, its gated half, o, w, y0, dw, d_o, da, dt, du, dx
  testing::parity_plan plan;
  plan.roundings = 12;
  triangle_on_meshes<bf16, incoming, channel_all_to_all, 8>(plan);
}
TEST_CASE("outgoing, cannon, bf16") {
  testing::parity_plan plan;  // as above: the ring adds its terms in fp32 and rounds once
  plan.roundings = 12;
  triangle_on_meshes<bf16, outgoing, cannon, 8>(plan);
}
