#pragma once
// From two singles to a pair: row form [batch, tokens, ...] on the row axis, column form on the
// column axis. The pair's placement follows from theirs; no communication. The adjoints are sums
// over the other dimension, partial on the axis that shards it: exactly the cotangents of the two
// operands (law L5).

#include "dtm/core/space.hpp"
#include "dtm/ops/elementwise.hpp"

namespace dtm {

namespace detail {

// [b, i, rest...] and [b, j, rest...] on a mesh: every axis must shard at most one of the two
// roles.
template <class Row, class Column>
struct outer_layout;
template <class Mesh, class B, class N, class... R, class... P, class... Q>
struct outer_layout<layout<Mesh, shape<B, N, R...>, P...>, layout<Mesh, shape<B, N, R...>, Q...>> {
  template <class Left, class Right>
  static constexpr bool possible = (std::is_same_v<Left, shard<0>> &&
                                    std::is_same_v<Right, shard<0>>) ||
                                   (std::is_same_v<Left, shard<1>> && is_replicate<Right>) ||
                                   (is_replicate<Left> && std::is_same_v<Right, shard<1>>) ||
                                   (is_replicate<Left> && is_replicate<Right>);
  template <class Left, class Right>
  using combined = std::conditional_t<std::is_same_v<Right, shard<1>>, shard<2>, Left>;
  template <class Indices>
  struct checks;
  template <std::size_t... I>
  struct checks<std::index_sequence<I...>> {
    using check = first_error<
        unless<possible<P, Q>,
               contract::operands_disagree<operation::outer_sum,
                                           typename Mesh::template axis_at<int(I)>, P, Q>>...>;
  };
  using check = typename checks<std::make_index_sequence<std::size_t(Mesh::rank)>>::check;
  using type = layout<Mesh, shape<B, N, N, R...>, combined<P, Q>...>;
};

template <class Row, class Column>
using outer_t = with_layout_t<
    Row, typename outer_layout<typename Row::layout_type, typename Column::layout_type>::type>;

template <class Row, class Column>
using outer_check = first_error<
    typename outer_layout<typename Row::layout_type, typename Column::layout_type>::check,
    element_check<at<operation::outer_sum, operand::right>, typename Row::element_type,
                  typename Column::element_type>>;

template <class Result, class Context, class Row, class Column>
Result outer_result(Context& ctx, Row const& row, Column const& column) {
  (void)sizeof(outer_check<Row, Column>);
  global_extents<Row::rank + 1> global;
  global[0] = row.global_extent(0);
  global[1] = row.global_extent(1);
  global[2] = column.global_extent(1);
  for (int d = 2; d < Row::rank; ++d) global[d + 1] = row.global_extent(d);
  return Result(ctx, global);
}

}  // namespace detail

/// z[b, i, j, c] = row[b, i, c] + column[b, j, c].
template <class Context, any_tensor Row, any_tensor Column>
detail::outer_t<Row, Column> outer_sum(Context& ctx, Row const& row, Column const& column) {
  static_assert(Row::rank == 3, "dtm outer_sum: the operands are [batch, tokens, channels]");
  auto z = detail::outer_result<detail::outer_t<Row, Column>>(ctx, row, column);
  auto const r = row.to_local();
  if constexpr (detail::holds<detail::outer_check<Row, Column>>)
    local::for_each(ctx, z.size(),
                    kernels::outer_sum<typename Row::element_type>{
                        row.data(), column.data(), r.extent[1], column.to_local().extent[1],
                        r.extent[2], z.data()});
  return z;
}

/// mask[b, i, j] = row[b, i] * column[b, j].
template <class Context, any_tensor Row, any_tensor Column>
detail::outer_t<Row, Column> outer_product(Context& ctx, Row const& row, Column const& column) {
  static_assert(Row::rank == 2, "dtm outer_product: the operands are [batch, tokens]");
  auto z = detail::outer_result<detail::outer_t<Row, Column>>(ctx, row, column);
  if constexpr (detail::holds<detail::outer_check<Row, Column>>)
    local::for_each(ctx, z.size(),
                    kernels::outer_product<typename Row::element_type>{
                        row.data(), column.data(), row.to_local().extent[1],
                        column.to_local().extent[1], z.data()});
  return z;
}

}  // namespace dtm
