// Elements of every type are moved alike: 16-bit storage, whole numbers and bytes as well as
// floating point, on a pair of rank four; those that can be added are added exactly.

#include "reference.hpp"

using namespace dtm;
using namespace reference;

namespace {

using pair_shape = shape<batch, tokens, tokens, c<5>>;
template <class... P>
using placed = layout<grid, pair_shape, P...>;
using rows_and_columns = placed<shard<0>, shard<1>, shard<2>>;

auto some_extents(grid_context const& ctx) {
  int const ranks = ctx.where().ranks();
  return extents{bind<batch>(ctx.where().sizes[0]), bind<tokens>(2 * ranks)};
}

template <class X>
void is_right(X const& x, content const& what, char const* name, unsigned reduced = 0) {
  judge(compare(x, what, reduced),
        mesh_text(x.where().sizes) + ", " + element_name<typename X::element_type>() + ": " + name);
}

template <class T>
void move_around(grid_context& ctx) {
  constexpr content plain;
  grid_tensor<T, rows_and_columns> x(ctx, some_extents(ctx));
  fill(x, plain);

  auto const rows = apply<all_gather<cp1>>(ctx, x, "x");
  is_right(rows, plain, "rows");
  auto const whole = apply<all_gather<cp0>>(ctx, rows, "rows");
  is_right(whole, plain, "whole");
  is_right(apply<all_slice<cp1, 1>>(ctx, rows, "rows"), plain, "rows inside rows");
  is_right(apply<all_slice<cp0, 2>>(ctx, whole, "whole"), plain, "columns");
  is_right(apply<broadcast<cp0>>(ctx, whole, "whole"), plain, "broadcast");
  is_right(apply<transpose<cp0, cp1>>(ctx, x, "x"), plain, "columns and rows");
  is_right(apply<transpose<cp0, cp1>>(ctx, rows, "rows"), plain, "columns form");

  auto const blocks = apply<all_to_all<move<cp1, 1>>>(ctx, x, "x");
  is_right(blocks, plain, "all rows");
  auto const channels = apply<all_to_all<move<cp0, 3>, move<cp1, 3>>>(ctx, x, "x");
  is_right(channels, plain, "planes");
  is_right(apply<all_to_all<move<cp0, 1>, move<cp1, 2>>>(ctx, channels, "planes"), plain,
           "back from planes");
  is_right(apply<all_to_all<move<cp0, 1>, move<cp1, 1>>>(ctx, channels, "planes"), plain,
           "from planes to rows");

  // there and back again is where it began
  is_right(shift_along<cp1>(ctx, shift_along<cp1>(ctx, x, 2, "x").wait(), -2, "x").wait(), plain,
           "shifted back");
}

template <class T>
void reduce(grid_context& ctx) {
  using pending = placed<shard<0>, partial<sum>, partial<sum>>;
  constexpr content terms = content_of<pending>();
  grid_tensor<T, pending> x(ctx, some_extents(ctx));
  fill(x, terms);
  is_right(apply<all_reduce<cp0>>(ctx, x, "x"), terms, "sum over rows", bit<cp0>);
  is_right(apply<all_reduce<cp0, cp1>>(ctx, x, "x"), terms, "sum", bit<cp0> | bit<cp1>);
  auto const rows = apply<reduce_scatter<cp0, 1>>(ctx, x, "x");
  is_right(rows, terms, "rows", bit<cp0>);
  is_right(apply<reduce_scatter<cp1, 1>>(ctx, rows, "rows"), terms, "rows inside rows",
           bit<cp0> | bit<cp1>);
  is_right(apply<reduce_scatter<cp1, 2>>(ctx, rows, "rows"), terms, "columns", bit<cp0> | bit<cp1>);

  using largest = placed<shard<0>, partial<dtm::max>, shard<2>>;
  grid_tensor<T, largest> m(ctx, some_extents(ctx));
  fill(m);
  is_right(apply<all_reduce<cp0>>(ctx, m, "m"), content_of<largest>(), "maximum", bit<cp0>);
}

}  // namespace

TEST_CASE("every element type is moved") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    move_around<float>(ctx);
    move_around<double>(ctx);
    move_around<bf16>(ctx);
    move_around<std::int32_t>(ctx);
    move_around<std::int64_t>(ctx);
    move_around<std::uint8_t>(ctx);
  }
}

TEST_CASE("every type of number is reduced") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    reduce<float>(ctx);
    reduce<double>(ctx);
    reduce<std::int32_t>(ctx);
    reduce<std::int64_t>(ctx);
  }
}

TEST_CASE("scalars and empty tensors are collective operands too") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    using term = layout<grid, shape<>, partial<sum>, partial<sum>, partial<sum>>;
    grid_tensor<double, term> loss(ctx, extents{});
    double const mine = 1 + dtm::testing::rank();
    loss.copy_from_host(&mine);
    int const ranks = ctx.where().ranks();
    auto const total = apply<all_reduce<dp, cp0, cp1>>(ctx, loss, "loss");
    CHECK(item(total) == ranks * (ranks + 1) / 2);

    grid_tensor<float, rows_and_columns> none(ctx, extents{bind<batch>(0), bind<tokens>(0)});
    auto const rows = apply<all_gather<cp1>>(ctx, none, "none");
    auto const turned = apply<transpose<cp0, cp1>>(ctx, none, "none");
    CHECK(rows.size() + turned.size() == 0);
  }
}

TEST_CASE("an extent that does not fit the result is one error on all ranks") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    int const rows = ctx.size<cp0>(), columns = ctx.size<cp1>();
    if (rows % columns == 0) continue;  // it fits
    using row_form = layout<grid, shape<tokens>, replicate, shard<0>, replicate>;
    grid_tensor<float, row_form> const x(ctx, extents{bind<tokens>(rows)});
    CHECK_THROWS_WITH((apply<transpose<cp0, cp1>>(ctx, x, "x")),
                      dtm::testing::contains("shards of mesh axis cp1"));
  }
}
