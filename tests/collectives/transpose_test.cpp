// transpose in all variants on every layout that accepts it, on square and rectangular meshes:
// shard with shard, shard with replicate, and shard with a pending sum, whose terms come out in
// another way but with the same sum.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class Layout, class Axis>
constexpr bool pending_on = detail::is_partial<typename Layout::template placement<Axis>>;

template <class A, class B>
struct test {
  static constexpr std::size_t kinds = 5;
  template <class Layout>
  static constexpr bool legal = detail::accepts<transpose<A, B>, Layout>;

  template <class Layout>
  static void run(grid_context& ctx, std::string const& name) {
    if constexpr (pending_on<Layout, A>)
      sums_are_kept<Layout, A, B>(ctx, name);
    else if constexpr (pending_on<Layout, B>)
      sums_are_kept<Layout, B, A>(ctx, name);
    else
      keeps_the_content<transpose<A, B>>::template run<Layout>(ctx, name);
  }

  template <class Layout, class Pending, class Sharded>
  static void sums_are_kept(grid_context& ctx, std::string const& name) {
    grid_tensor<double, Layout> x(ctx, extents_on(ctx));
    fill(x);
    auto const y = apply<transpose<A, B>>(ctx, x, "x");
    judge(compare(apply<all_reduce<Sharded>>(ctx, y, "y"), content_of<Layout>(), bit<Pending>),
          name + ": result");
    judge(compare(x, content_of<Layout>()), name + ": operand");
  }
};

}  // namespace

TEST_CASE("transpose on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<test<dp, cp0>, test<dp, cp1>, test<cp0, cp1>>(ctx, even_channels{}) == 198);
  }
}

TEST_CASE("the order in which transpose names its axes does not matter") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<test<cp1, cp0>>(ctx, even_channels{}) == 66);
  }
}
