// all_to_all of one axis on every layout that accepts it. The five channels divide by no mesh of
// more than one rank: they come and go as planes.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class Axis>
int tried_on(grid_context& ctx) {
  return tried<keeps_the_content<all_to_all<move<Axis, 0>>>,
               keeps_the_content<all_to_all<move<Axis, 1>>>,
               keeps_the_content<all_to_all<move<Axis, 2>>>>(ctx, odd_channels{});
}

}  // namespace

TEST_CASE("all_to_all of one axis on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried_on<dp>(ctx) + tried_on<cp0>(ctx) + tried_on<cp1>(ctx) == 246);
  }
}
