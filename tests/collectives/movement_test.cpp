// shift_along on every layout, and broadcast on every layout that accepts it.

#include "every_placement.hpp"

using namespace dtm;
using namespace reference;

namespace {

template <class Axis>
struct shift {
  static constexpr std::size_t kinds = 5;
  template <class Layout>
  static constexpr bool legal = detail::accepts<ring_shift<Axis>, Layout>;

  /// The tile of the rank `distance` further along the axis, its terms included.
  template <class Layout>
  static void run(grid_context& ctx, std::string const& name) {
    content what = content_of<Layout>();
    what.terms |= bit<Axis>;  // replicas differ, so that it is seen whose tile came
    grid_tensor<double, Layout> x(ctx, extents_on(ctx));
    fill(x, what);
    for (int distance : {0, 1, -1, 2}) {
      auto const y = shift_along<Axis>(ctx, x, distance, "x").wait();
      auto there = ctx.where();
      int const axis = grid::index<Axis>(), size = there.sizes[axis];
      there.coordinates[axis] = ((there.coordinates[axis] + distance) % size + size) % size;
      judge(compare_from(there, y, what), name + ": distance " + std::to_string(distance));
    }
    judge(compare(x, what), name + ": operand");
  }
};

template <class Axis>
struct from_the_first {
  static constexpr std::size_t kinds = 5;
  template <class Layout>
  static constexpr bool legal = detail::accepts<broadcast<Axis>, Layout>;

  template <class Layout>
  static void run(grid_context& ctx, std::string const& name) {
    content what = content_of<Layout>();
    what.terms |= bit<Axis>;
    grid_tensor<double, Layout> x(ctx, extents_on(ctx));
    fill(x, what);
    auto const y = apply<broadcast<Axis>>(ctx, x, "x");
    auto first = ctx.where();
    first.coordinates[grid::index<Axis>()] = 0;
    judge(compare_from(first, y, what), name + ": result");
    judge(compare(x, what), name + ": operand");
  }
};

}  // namespace

TEST_CASE("shift_along on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<shift<dp>, shift<cp0>, shift<cp1>>(ctx, even_channels{}) == 375);
  }
}

TEST_CASE("broadcast on every layout") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    CHECK(tried<from_the_first<dp>, from_the_first<cp0>, from_the_first<cp1>>(
              ctx, even_channels{}) == 75);
  }
}
