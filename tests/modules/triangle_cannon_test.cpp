// Triangle multiplication by Cannon's ring, on square meshes.

#include "triangle_multiplication.hpp"

using namespace dtm;
using dtm::testing::space_of;
using dtm::testing::triangle_on_meshes;

TEST_CASE("outgoing, cannon, fp64") {
  triangle_on_meshes<double, outgoing, cannon, 8>();
}
TEST_CASE("incoming, cannon, fp64") {
  triangle_on_meshes<double, incoming, cannon, 8>();
}

TEST_CASE("cannon refuses a mesh that is not square, on all ranks") {
  for (auto const& sizes : testing::meshes()) {
    if (testing::is_square(sizes)) continue;
    testing::test_context ctx(testing::world(), sizes, 0, testing::test_options());
    triangle_multiplication<outgoing, space_of<double>, 8, cannon> module(ctx);
    auto const bound = testing::usual_extents();
    pair_tensor<space_of<double>, c<8>> x(ctx, bound);
    pair_tensor<space_of<double>> mask(ctx, bound);
    CHECK_THROWS_WITH(module.forward(ctx, x, mask),
                      testing::contains("the cannon schedule needs a square mesh"));
  }
}
