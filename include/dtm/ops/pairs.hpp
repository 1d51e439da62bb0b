#pragma once
// The transpose of a pair's tile: rows and columns swapped on each rank. Nothing moves between ranks;
// the axes that shard rows and columns change places, which is a mesh of the other order
// (backend/transposed.hpp).

#include "dtm/backend/local.hpp"
#include "dtm/backend/transposed.hpp"
#include "dtm/core/tensor.hpp"
#include "dtm/kernels/pairs.hpp"

namespace dtm {

namespace detail {

template <class Layout>
struct transposed_pair {
  static_assert(
      false_for<Layout>,
      "dtm swap_pairs: the operand is a pair [batch, tokens, tokens, ...] placed shard<0>, "
      "shard<1>, shard<2>");
};
template <class Mesh, class... Channels>
struct transposed_pair<
    layout<Mesh, shape<batch, tokens, tokens, Channels...>, shard<0>, shard<1>, shard<2>>> {
  using type = layout<transposed_mesh_t<Mesh>, shape<batch, tokens, tokens, Channels...>, shard<0>,
                      shard<1>, shard<2>>;
};

}  // namespace detail

template <class X>
using transposed_pair_t =
    with_layout_t<X, typename detail::transposed_pair<typename X::layout_type>::type>;

/// y[b, j, i, ...] = x[b, i, j, ...]; `target` is a context of the transposed mesh.
template <class Context, any_tensor X>
transposed_pair_t<X> swap_pairs(Context& target, X const& x) {
  transposed_pair_t<X> y(target, x.global());
  auto const tile = x.to_local();
  std::int64_t const rows = tile.extent[1], columns = tile.extent[2],
                     pairs = tile.extent[0] * rows * columns;
  local::for_each(target, pairs,
                  kernels::swap_pairs<typename X::element_type>{
                      x.data(), rows, columns, pairs > 0 ? x.size() / pairs : 1, y.data()});
  return y;
}

}  // namespace dtm
