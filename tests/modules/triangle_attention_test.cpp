// Triangle attention on every mesh.

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

TEST_CASE("starting node, ring, rows without a key, fp64") {
  attention_on_meshes<double, starting, ring, 8, 2, 4>(plan_with_empty_rows());
}
TEST_CASE("ending node, ring, weights as masks, fp64") {
  attention_on_meshes<double, ending, ring, 12, 3, 8>(plan_without_empty_rows(), moderate_infinity);
}
TEST_CASE("the ring is refused on a mesh that is not square, on all ranks") {
  on_meshes([](auto& ctx) {
    if (ctx.template size<cp0>() == ctx.template size<cp1>()) return;
    using module_type = triangle_attention<starting, space_of<double>, 8, 2, 4, ring>;
    module_type module(ctx);
    auto const bound = extents{bind<batch>(2), bind<tokens>(12)};
    module_type::X x(ctx, bound);
    module_type::Mask mask(ctx, bound);
    CHECK_THROWS_AS(module.forward(ctx, x, mask), mesh_error);
  });
}

namespace {

/// Of the usual numbers of tokens the bias comes in panels of one row of each rank; of five rows a rank, on
/// three or four ranks, in two or three, and the last one is shorter.
template <class Node>
void infers_as_forward(std::int64_t rows = 0) {
  using module_type = triangle_attention<Node, space_of<float>, 16, 2, 8>;
  for (auto const& sizes : meshes()) {
    test_context ctx(world(), sizes, 0, test_options());
    module_type module(ctx);
    each_parameter(module, [](std::string const& name, auto& parameter) {
      fill(parameter, draw_activation, key_of(3, name));
    });
    auto const bound = rows == 0
                           ? extents_on(sizes)
                           : extents{bind<batch>(2), bind<tokens>(rows * sizes[1] * sizes[2])};
    typename module_type::X x(ctx, bound);
    typename module_type::Mask mask(ctx, bound);
    fill(x, draw_activation, 5);
    fill(mask, draw_binary_mask, 6);
    auto const expected = module.forward(ctx, x, mask);
    CHECK(bytes_of(module.infer(ctx, x, mask)) == bytes_of(expected.y));
  }
}

}  // namespace

TEST_CASE("inference gives the bits of forward") {
  infers_as_forward<starting>();
  infers_as_forward<ending>();
}
TEST_CASE("inference with an odd number of rows and a last panel that is shorter") {
  infers_as_forward<starting>(5);
  infers_as_forward<ending>(5);
}
