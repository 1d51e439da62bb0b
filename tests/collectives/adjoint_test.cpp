// Every collective and the one that carries its cotangent back (law L5): <A x, y> = <x, A' y>,
// exactly, in whole numbers. The pairing of a tensor with a cotangent is the sum of the local
// products over all ranks: where one of them is replicated the other is a term, where both are
// sharded each element is met once.

#include "reference.hpp"

using namespace dtm;
using namespace reference;

namespace {

using pair_shape = shape<batch, tokens, tokens, c<5>>;
using plane_shape = shape<batch, tokens, tokens, planes<5>>;
template <class Shape, class... P>
using tensor_on = grid_tensor<double, layout<grid, Shape, P...>>;
template <class... P>
using placed = tensor_on<pair_shape, P...>;

/// Exact: both are whole numbers. Padding of planes does not count.
template <class X, class Y>
std::int64_t pairing(grid_context& ctx, X const& x, Y const& y) {
  static_assert(std::is_same_v<cotangent_t<X>, Y>);
  std::int64_t sum = 0, total = 0;
  auto const part = region_of(x);
  auto const left = on_host(x), right = on_host(y);
  part.each([&](std::int64_t const* index, std::int64_t at) {
    if (part.is_real(index)) sum += std::int64_t(left[at]) * std::int64_t(right[at]);
  });
  everyone(ctx).all_reduce(&sum, &total, 1, comm::reduction::sum, {"pairing"}).wait();
  return total;
}

template <class X>
X numbers(grid_context& ctx) {
  int const ranks = ctx.where().ranks();
  X x(ctx, extents{bind<batch>(ctx.where().sizes[0]), bind<tokens>(2 * ranks)});
  fill(x);
  return x;
}

template <class X, class Forward, class Backward>
void check_adjoint(grid_context& ctx, char const* name, Forward forward, Backward backward) {
  auto const x = numbers<X>(ctx);
  auto const y = forward(x);
  auto const dy = numbers<cotangent_t<std::remove_cvref_t<decltype(y)>>>(ctx);
  auto const dx = backward(dy);
  INFO(mesh_text(ctx.where().sizes) << ", " << name);
  auto const there = pairing(ctx, y, dy), back = pairing(ctx, x, dx);
  CHECK(there == back);
  CHECK(there != 0);
}

template <class Collective, class Adjoint, class X>
void adjoint(grid_context& ctx, char const* name) {
  check_adjoint<X>(
      ctx, name, [&](auto const& x) { return apply<Collective>(ctx, x, "x"); },
      [&](auto const& dy) { return apply<Adjoint>(ctx, dy, "dy"); });
}

using s0 = shard<0>;
using s1 = shard<1>;
using s2 = shard<2>;
using s3 = shard<3>;
using pending = partial<sum>;

void gathers_and_reductions(grid_context& ctx) {
  adjoint<all_gather<cp1>, reduce_scatter<cp1, 2>, placed<s0, s1, s2>>(ctx, "gather of columns");
  adjoint<all_gather<cp0>, reduce_scatter<cp0, 1>, placed<s0, s1, replicate>>(ctx,
                                                                              "gather of rows");
  adjoint<all_gather<cp1>, reduce_scatter<cp1, 1>, placed<s0, s1, s1>>(ctx,
                                                                       "gather of the inner axis");
  adjoint<reduce_scatter<cp1, 2>, all_gather<cp1>, placed<s0, s1, pending>>(ctx,
                                                                            "scatter of columns");
  adjoint<reduce_scatter<dp, 0>, all_gather<dp>, placed<pending, s1, pending>>(
      ctx, "scatter of a batch");
  adjoint<all_reduce<cp0>, all_reduce<cp0>, placed<s0, pending, s2>>(ctx, "sum over one axis");
  adjoint<all_reduce<cp0, cp1>, all_reduce<cp0, cp1>, placed<s0, pending, pending>>(
      ctx, "sum over two axes");
}

void exchanges(grid_context& ctx) {
  adjoint<all_to_all<move<cp1, 1>>, all_to_all<move<cp1, 2>>, placed<s0, s1, s2>>(
      ctx, "columns to rows");
  adjoint<all_to_all<move<cp0, 3>, move<cp1, 3>>, all_to_all<move<cp0, 1>, move<cp1, 2>>,
          placed<s0, s1, s2>>(ctx, "to planes");
  adjoint<all_to_all<move<cp0, 1>, move<cp1, 2>>, all_to_all<move<cp0, 3>, move<cp1, 3>>,
          tensor_on<plane_shape, s0, s3, s3>>(ctx, "from planes");
  adjoint<all_to_all<move<cp1, 1>>, all_to_all<move<cp1, 2>>, placed<pending, s1, s2>>(
      ctx, "terms move too");
}

void transposes(grid_context& ctx) {
  using both = transpose<cp0, cp1>;
  adjoint<both, both, placed<s0, s1, s2>>(ctx, "transpose of shards");
  adjoint<both, both, placed<s0, s1, replicate>>(ctx, "row form to column form");
  adjoint<both, both, placed<s0, replicate, s2>>(ctx, "column form to row form");
  adjoint<both, both, placed<s0, s1, pending>>(ctx, "terms in row form");
  adjoint<both, both, placed<s0, pending, s2>>(ctx, "terms in column form");
}

}  // namespace

TEST_CASE("gathers, scatters and sums are each other's adjoints") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    gathers_and_reductions(ctx);
  }
}

TEST_CASE("the adjoint of an exchange is the exchange back") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    exchanges(ctx);
  }
}

TEST_CASE("a transpose is its own adjoint") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    transposes(ctx);
  }
}

TEST_CASE("the adjoint of a shift is the shift back") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    for (int distance : {1, 2, -1}) {
      auto const along = [&](int by) {
        return [&ctx, by](auto const& x) { return shift_along<cp0>(ctx, x, by, "x").wait(); };
      };
      check_adjoint<placed<s0, s1, s2>>(ctx, "shift", along(distance), along(-distance));
    }
  }
}

TEST_CASE("there and back gives the same tensor, bit for bit") {
  for (auto const& sizes : meshes()) {
    grid_context ctx = on_mesh(sizes);
    constexpr content plain;
    auto const x = numbers<placed<s0, s1, s2>>(ctx);
    auto const turned = apply<transpose<cp0, cp1>>(ctx, x, "x");
    judge(compare(apply<transpose<cp0, cp1>>(ctx, turned, "x"), plain), "transpose");
    auto const row = numbers<placed<s0, s1, replicate>>(ctx);
    auto const column = apply<transpose<cp0, cp1>>(ctx, row, "x");
    judge(compare(apply<transpose<cp0, cp1>>(ctx, column, "x"), plain),
          "row form to column form and back");
    judge(compare(apply<all_slice<cp1, 2>>(ctx, apply<all_gather<cp1>>(ctx, x, "x"), "x"), plain),
          "gather and slice");
    auto const planes = apply<all_to_all<move<cp0, 3>, move<cp1, 3>>>(ctx, x, "x");
    judge(compare(apply<all_to_all<move<cp0, 1>, move<cp1, 2>>>(ctx, planes, "x"), plain),
          "planes and back");
  }
}
