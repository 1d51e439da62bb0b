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

namespace {

template <std::int64_t Channels>
void infers_as_forward() {
  using namespace testing;
  using module_type = triangle_multiplication<outgoing, space_of<float>, Channels>;
  for (auto const& sizes : meshes()) {
    test_context ctx(world(), sizes, 0, test_options());
    module_type module(ctx);
    each_parameter(module, [](std::string const& name, auto& parameter) {
      fill(parameter, draw_activation, key_of(3, name));
    });
    auto const bound = extents{bind<batch>(2), bind<tokens>(12)};
    typename module_type::X x(ctx, bound);
    typename module_type::Mask mask(ctx, bound);
    fill(x, draw_activation, 5);
    fill(mask, draw_weight_mask, 6);
    auto const expected = module.forward(ctx, x, mask);
    CHECK(bytes_of(module.infer(ctx, x, mask)) == bytes_of(expected.y));
  }
}

}  // namespace

TEST_CASE("inference gives the bits of forward, all channels at once") {
  infers_as_forward<8>();
}
TEST_CASE("inference gives the bits of forward, by groups of channels") {
  infers_as_forward<84>();  // two on 4, 6 and 9 ranks, else four
}
