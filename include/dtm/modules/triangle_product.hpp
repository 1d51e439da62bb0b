#pragma once
// The sum over k of triangle multiplication and its two adjoints, under two schedules (the
// contract of each is in triangle_multiplication.hpp):
//
//   forward(ctx, a, b)       a, b [b, C, i, j], pair-placed -> o alike; a, b as kept
//   backward(ctx, d_o, a, b) -> da, db [b, C, i, j]
//
//             o[i,j]                da                            db
//   outgoing  sum_k a[i,k] b[j,k]   [i,k] = sum_j do[i,j] b[j,k]  [j,k] = sum_i do[i,j] a[i,k]
//   incoming  sum_k a[k,i] b[k,j]   [k,i] = sum_j b[k,j] do[i,j]  [k,j] = sum_i a[k,i] do[i,j]

#include <string>
#include <type_traits>
#include <utility>

#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/core/space.hpp"
#include "dtm/modules/triangle_rows.hpp"
#include "dtm/ops/einsum.hpp"

namespace dtm {

struct outgoing {};
struct incoming {};

/// Schedules of triangle multiplication.
struct channel_all_to_all {
  static constexpr char const* name = "channel_all_to_all";
};
struct cannon {
  static constexpr char const* name = "cannon";
};

namespace detail {

template <class Space>
using deal_out = all_to_all<move<row_axis<Space>, 1>, move<column_axis<Space>, 1>>;
template <class Space>
using deal_back = all_to_all<move<row_axis<Space>, 2>, move<column_axis<Space>, 3>>;

}  // namespace detail

template <class Direction, class Space, std::int64_t C, class Schedule>
struct triangle_product;

template <class Direction, class Space, std::int64_t C>
struct triangle_product<Direction, Space, C, channel_all_to_all> {
  static constexpr bool is_outgoing = std::is_same_v<Direction, outgoing>;
  using tile = detail::channel_tile<Space, C>;
  using out = detail::deal_out<Space>;
  using back = detail::deal_back<Space>;
  using operand = after_t<out, tile>;  // [b, planes<C>, N, N]

  using forward_collectives =
      collectives<on_tensor<arg::a, out>, on_tensor<arg::b, out>, on_tensor<arg::o, back>>;
  using backward_collectives =
      collectives<on_tensor<arg::d_o, out>, on_tensor<arg::da, back>, on_tensor<arg::db, back>>;

  struct result {
    tile o;
    operand a, b;
  };
  struct cotangents {
    tile da, db;
  };

  template <class Context>
  static result forward(Context& ctx, tile a_tile, tile b_tile) {
    auto a_sent = begin<out>(ctx, a_tile, "a");
    auto b_sent = begin<out>(ctx, b_tile, "b");
    auto a = a_sent.wait();
    a_tile.release();
    auto b = b_sent.wait();
    b_tile.release();
    auto o = apply<back>(ctx, multiply(ctx, a, b), "o");
    return {std::move(o), std::move(a), std::move(b)};
  }

  /// o from operands that are dealt already, not yet dealt back.
  template <class Context>
  static operand multiply_dealt(Context& ctx, operand const& a, operand const& b) {
    return multiply(ctx, a, b);
  }

  /// o alone: the operands go as soon as they are multiplied.
  template <class Context>
  static tile infer(Context& ctx, tile a_tile, tile b_tile) {
    auto a = apply<out>(ctx, a_tile, "a");
    a_tile.release();
    auto b = apply<out>(ctx, b_tile, "b");
    b_tile.release();
    auto const o = multiply(ctx, a, b);
    a.release();
    b.release();
    return apply<back>(ctx, o, "o");
  }

  template <class Context>
  static cotangents backward(Context& ctx, tile d_o, operand a, operand b) {
    auto const d_planes = apply<out>(ctx, d_o, "d_o");
    d_o.release();
    auto const da = left_adjoint(ctx, d_planes, b);
    auto da_sent = begin<back>(ctx, da, "da");
    b.release();
    auto const db = right_adjoint(ctx, d_planes, a);
    auto db_sent = begin<back>(ctx, db, "db");
    a.release();
    return {da_sent.wait(), db_sent.wait()};  // in this order
  }

 private:
  template <class Context>
  static operand multiply(Context& ctx, operand const& a, operand const& b) {
    if constexpr (is_outgoing)
      return einsum<"bdik,bdjk->bdij">(ctx, a, b);
    else
      return einsum<"bdki,bdkj->bdij">(ctx, a, b);
  }
  template <class Context>
  static operand left_adjoint(Context& ctx, operand const& d_o, operand const& b) {
    if constexpr (is_outgoing)
      return einsum<"bdij,bdjk->bdik">(ctx, d_o, b);
    else
      return einsum<"bdkj,bdij->bdki">(ctx, b, d_o);
  }
  template <class Context>
  static operand right_adjoint(Context& ctx, operand const& d_o, operand const& a) {
    if constexpr (is_outgoing)
      return einsum<"bdij,bdik->bdjk">(ctx, d_o, a);
    else
      return einsum<"bdki,bdij->bdkj">(ctx, a, d_o);
  }
};

// Cannon's algorithm on a square grid. Rank (i, j) starts with L at (i, (i+j) mod P) and R at
// ((i+j) mod P, j); in step s both carry block (i+j+s) mod P of the summed index. Products are of
// tiles, under the placements (law L15): the summed index is sharded by different axes in the two
// operands, which no local contraction may do.
template <class Direction, class Space, std::int64_t C>
struct triangle_product<Direction, Space, C, cannon> {
  static constexpr int fixed_rows = Space::mesh_type::static_size(1),
                       fixed_columns = Space::mesh_type::static_size(2);
  static_assert(fixed_rows == 0 || fixed_columns == 0 || fixed_rows == fixed_columns,
                "dtm triangle_multiplication: the cannon schedule needs a square mesh, and this "
                "one is pinned to another form; use channel_all_to_all, which runs on any mesh");
  static constexpr bool is_outgoing = std::is_same_v<Direction, outgoing>;
  using T = typename Space::element;
  using A = accumulate_t<T>;
  using tile = detail::channel_tile<Space, C>;
  using operand = tile;
  using rows = row_axis<Space>;
  using columns = column_axis<Space>;
  using across = transpose<rows, columns>;

  using forward_collectives =
      collectives<on_tensor<std::conditional_t<is_outgoing, arg::b, arg::a>, across>,
                  on_tensor<arg::a, ring_shift<columns>>, on_tensor<arg::b, ring_shift<rows>>>;
  using backward_collectives =
      collectives<on_tensor<arg::d_o, across>, on_tensor<arg::da, ring_shift<columns>>,
                  on_tensor<arg::da, ring_shift<rows>>, on_tensor<arg::db, ring_shift<columns>>,
                  on_tensor<arg::db, ring_shift<rows>>>;

  struct result {
    tile o;
    operand a, b;
  };
  struct cotangents {
    tile da, db;
  };

  template <class Context>
  static result forward(Context& ctx, tile a, tile b) {
    require_square(ctx);
    auto o = multiply(ctx, a, b);
    return {std::move(o), std::move(a), std::move(b)};
  }

  template <class Context>
  static tile infer(Context& ctx, tile a, tile b) {
    return forward(ctx, std::move(a), std::move(b)).o;
  }

  template <class Context>
  static cotangents backward(Context& ctx, tile d_o, operand a, operand b) {
    auto d_across = apply<across>(ctx, d_o, "d_o");
    if constexpr (is_outgoing)
      return {ring<false, false>(ctx, std::move(d_o), std::move(b), "da", "da"),
              ring<true, false>(ctx, std::move(d_across), std::move(a), "db", "db")};
    else
      return {ring<false, true>(ctx, std::move(b), std::move(d_across), "da", "da"),
              ring<false, false>(ctx, std::move(a), std::move(d_o), "db", "db")};
  }

 private:
  template <class Context>
  static void require_square(Context& ctx) {
    int const p0 = ctx.template size<rows>(), p1 = ctx.template size<columns>();
    if (p0 != p1)
      throw mesh_error(
          "dtm triangle_multiplication: the cannon schedule needs a square mesh and got " +
          std::string(rows::name.characters) + "=" + std::to_string(p0) + ", " +
          columns::name.characters + "=" + std::to_string(p1) +
          "; use the channel_all_to_all schedule, which runs on any mesh");
  }

  template <class Context>
  static tile multiply(Context& ctx, tile const& a, tile const& b) {
    if constexpr (is_outgoing)
      return ring<false, true>(ctx, a.clone(), apply<across>(ctx, b, "b"), "a", "b");
    else
      return ring<true, false>(ctx, apply<across>(ctx, a, "a"), b.clone(), "a", "b");
  }

  template <bool LeftTransposed, bool RightTransposed, class Context, class Left, class Right>
  static tile ring(Context& ctx, Left left, Right right, char const* left_name,
                   char const* right_name) {
    int const steps = ctx.template size<rows>();
    {
      auto skew_left = shift_along<columns>(ctx, left, ctx.template coordinate<rows>(), left_name);
      auto skew_right =
          shift_along<rows>(ctx, right, ctx.template coordinate<columns>(), right_name);
      Left skewed_left = skew_left.wait();
      Right skewed_right = skew_right.wait();
      left = std::move(skewed_left);
      right = std::move(skewed_right);
    }
    auto const l = left.to_local();
    auto const r = right.to_local();
    local::gemm_shape shape;
    shape.left_transposed = LeftTransposed;
    shape.right_transposed = RightTransposed;
    shape.batch = l.extent[0] * l.extent[1];
    shape.m = l.extent[LeftTransposed ? 3 : 2];
    shape.k = l.extent[LeftTransposed ? 2 : 3];
    shape.n = r.extent[RightTransposed ? 2 : 3];
    scratch<A> total(ctx.memory(), shape.batch * shape.m * shape.n);
    local::for_each(ctx, total.size(), kernels::set_zero<A>{total.data()});
    shape.accumulate = true;
    for (int step = 0; step < steps; ++step) {
      if (step + 1 == steps) {
        local::gemm(ctx, shape, left.data(), right.data(), total.data());
        break;
      }
      auto next_left = shift_along<columns>(ctx, left, 1, left_name);
      auto next_right = shift_along<rows>(ctx, right, 1, right_name);
      local::gemm(ctx, shape, left.data(), right.data(), total.data());
      Left arrived_left = next_left.wait();
      Right arrived_right = next_right.wait();
      left = std::move(arrived_left);
      right = std::move(arrived_right);
    }
    tile product(ctx, left.global());
    local::for_each(ctx, product.size(), kernels::convert<A, T>{total.data(), product.data()});
    return product;
  }
};

}  // namespace dtm
