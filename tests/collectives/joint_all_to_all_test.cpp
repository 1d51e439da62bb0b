// all_to_all of two and of three axes in one exchange, on every layout without pending sums that
// accepts it.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class... Move>
struct test : keeps_the_content<all_to_all<Move...>> {
  static constexpr std::size_t kinds = 4;
};

template <class A, class B>
int tried_on(grid_context& ctx) {
  return tried<
      test<move<A, 0>, move<B, 0>>, test<move<A, 0>, move<B, 1>>, test<move<A, 0>, move<B, 2>>,
      test<move<A, 1>, move<B, 0>>, test<move<A, 1>, move<B, 1>>, test<move<A, 1>, move<B, 2>>,
      test<move<A, 2>, move<B, 0>>, test<move<A, 2>, move<B, 1>>, test<move<A, 2>, move<B, 2>>>(
      ctx, odd_channels{});
}

}  // namespace

TEST_CASE("all_to_all of two axes on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried_on<dp, cp0>(ctx) + tried_on<dp, cp1>(ctx) + tried_on<cp0, cp1>(ctx) == 224);
  }
}

TEST_CASE("all_to_all of three axes") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<test<move<dp, 2>, move<cp0, 2>, move<cp1, 2>>,
                test<move<dp, 1>, move<cp0, 2>, move<cp1, 0>>,
                test<move<dp, 0>, move<cp0, 0>, move<cp1, 0>>,
                test<move<dp, 0>, move<cp0, 1>, move<cp1, 1>>>(ctx, odd_channels{}) == 32);
  }
}
