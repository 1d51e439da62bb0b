// Triangle attention with rows resident, on every mesh.

#include "triangle_attention.hpp"

using namespace dtm;
using namespace dtm::testing;

TEST_CASE("starting node, rows resident, rows without a key, fp64") {
  attention_on_meshes<double, starting, row_resident, 8, 2, 4>(plan_with_empty_rows());
}
TEST_CASE("ending node, rows resident, rows without a key, fp64") {
  attention_on_meshes<double, ending, row_resident, 8, 2, 4>(plan_with_empty_rows());
}
TEST_CASE("starting node, rows resident, weights as masks, fp64") {
  attention_on_meshes<double, starting, row_resident, 8, 2, 4>(plan_without_empty_rows(),
                                                               moderate_infinity);
}
TEST_CASE("ending node, hidden channels of another number, weights as masks, fp64") {
  attention_on_meshes<double, ending, row_resident, 12, 3, 8>(plan_without_empty_rows(),
                                                              moderate_infinity);
}

TEST_CASE("inference gives the bits of forward") {
  using module_type = triangle_attention<ending, space_of<float>, 16, 2, 8>;
  on_meshes([](auto& ctx) {
    module_type module(ctx);
    each_parameter(module, [](std::string const& name, auto& parameter) {
      fill(parameter, draw_activation, key_of(3, name));
    });
    auto const bound = extents{bind<batch>(2), bind<tokens>(attention_tokens())};
    module_type::X x(ctx, bound);
    module_type::Mask mask(ctx, bound);
    fill(x, draw_activation, 5);
    fill(mask, draw_binary_mask, 6);
    auto const expected = module.forward(ctx, x, mask);
    CHECK(bytes_of(module.infer(ctx, x, mask)) == bytes_of(expected.y));
  });
}
