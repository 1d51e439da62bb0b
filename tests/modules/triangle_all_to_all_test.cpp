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

TEST_CASE("inference gives the bits of forward, group by group of channels") {
  using namespace testing;
  constexpr std::int64_t channels = 64, n = 12;  // four groups
  using module_type = triangle_multiplication<outgoing, space_of<float>, channels>;
  for (auto const& sizes : meshes()) {
    test_context ctx(world(), sizes, 0, test_options());
    module_type module(ctx);
    each_parameter(module, [](std::string const& name, auto& parameter) {
      fill(parameter, draw_activation, key_of(3, name));
    });
    auto const bound = extents{bind<batch>(2), bind<tokens>(n)};
    module_type::X x(ctx, bound);
    module_type::Mask mask(ctx, bound);
    fill(x, draw_activation, 5);
    fill(mask, draw_weight_mask, 6);
    auto const expected = module.forward(ctx, x, mask);
    auto const y = module.infer(ctx, x, mask);
    auto const got = on_host(y), wanted = on_host(expected.y);
    std::int64_t differing = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) differing += got[i] != wanted[i];
    CHECK(differing == 0);
  }
}
