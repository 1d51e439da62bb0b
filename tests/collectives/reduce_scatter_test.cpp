// reduce_scatter on every layout that accepts it.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class Axis, int D>
using test = keeps_the_content<reduce_scatter<Axis, D>, bit<Axis>>;

template <class Axis>
int tried_on(grid_context& ctx) {
  return tried<test<Axis, 0>, test<Axis, 1>, test<Axis, 2>>(ctx, even_channels{});
}

}  // namespace

TEST_CASE("reduce_scatter on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried_on<dp>(ctx) + tried_on<cp0>(ctx) + tried_on<cp1>(ctx) == 183);
  }
}
