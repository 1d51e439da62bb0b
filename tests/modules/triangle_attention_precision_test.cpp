// Triangle attention with fp32 and bf16 elements. Rows without a key are among the inputs.

#include "triangle_attention.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

/// Stored on the way to dx where steps are single: u, q, k, v, g, o, its gated self, dy Wo, do, dg, dq,
/// dk, dv, du and dx.
parity_plan stored_in_bf16() {
  auto plan = plan_with_empty_rows();
  plan.roundings = 15;
  return plan;
}

}  // namespace

TEST_CASE("starting node, rows resident, fp32") {
  attention_on_meshes<float, starting, row_resident, 16, 2, 8>(plan_with_empty_rows(),
                                                               large_infinity);
}
TEST_CASE("ending node, ring, fp32") {
  attention_on_meshes<float, ending, ring, 16, 2, 8>(plan_with_empty_rows(), large_infinity);
}
TEST_CASE("ending node, rows resident, bf16") {
  attention_on_meshes<bf16, ending, row_resident, 16, 2, 8>(stored_in_bf16(), large_infinity);
}
TEST_CASE("starting node, ring, bf16") {
  attention_on_meshes<bf16, starting, ring, 16, 2, 8>(stored_in_bf16(), large_infinity);
}
