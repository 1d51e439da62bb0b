// all_reduce over one, two and three axes, sum and maximum, on every layout that accepts it. Terms
// of a maximum are all negative. A sum and a maximum cannot be pending on one tensor, so one
// reduction has one operation.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class... Axis>
using test = keeps_the_content<all_reduce<Axis...>, (0u | ... | bit<Axis>)>;

}  // namespace

TEST_CASE("all_reduce on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<test<dp>, test<cp0>, test<cp1>>(ctx, even_channels{}) == 150);
    CHECK(tried<test<dp, cp0>, test<dp, cp1>, test<cp0, cp1>>(ctx, even_channels{}) == 30);
    CHECK(tried<test<dp, cp0, cp1>>(ctx, even_channels{}) == 2);
  }
}

TEST_CASE("the order in which all_reduce names its axes does not matter") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<test<cp1, cp0>, test<cp1, dp>>(ctx, even_channels{}) == 20);
  }
}
