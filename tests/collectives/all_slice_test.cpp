// all_slice on every layout that accepts it.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class Axis>
int tried_on(grid_context& ctx) {
  return tried<keeps_the_content<all_slice<Axis, 0>>, keeps_the_content<all_slice<Axis, 1>>,
               keeps_the_content<all_slice<Axis, 2>>>(ctx, even_channels{});
}

}  // namespace

TEST_CASE("all_slice on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried_on<dp>(ctx) + tried_on<cp0>(ctx) + tried_on<cp1>(ctx) == 183);
    CHECK(ctx.ledger().entries.empty());
  }
}
