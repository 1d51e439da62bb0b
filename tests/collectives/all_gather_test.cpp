// all_gather on every layout that accepts it.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

TEST_CASE("all_gather on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<keeps_the_content<all_gather<dp>>, keeps_the_content<all_gather<cp0>>,
                keeps_the_content<all_gather<cp1>>>(ctx, even_channels{}) == 183);
  }
}
