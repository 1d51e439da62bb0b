// Operations on the tiles of one rank: products, a norm, gates, sums.
#include "dtm/core/space.hpp"
#include "dtm/host.hpp"
#include "dtm/ops/einsum.hpp"
#include "dtm/ops/elementwise.hpp"
#include "dtm/ops/layer_norm.hpp"
#include "dtm/ops/linear.hpp"

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;
using z_type = pair_tensor<space<float, grid>, c<8>>;
template <class... Placement>
using factor = tensor<float, layout<grid, shape<batch, c<8>, tokens, tokens>, Placement...>>;
template <class... D>
using parameter = tensor<float, layout<grid, shape<D...>, replicate, replicate, replicate>>;

void program(context<host, grid>& ctx, z_type const& x, parameter<c<16>, c<8>> const& weight,
             parameter<c<8>> const& scale, factor<shard<0>, shard<2>, replicate> const& a,
             factor<shard<0>, replicate, shard<2>> const& b) {
  auto normal = layer_norm_forward(ctx, x, scale, scale);
  gate(ctx, normal.y, x);
  linear(ctx, normal.y, weight);
  einsum<"bcik,bcjk->bcij">(ctx, a, b);
  sum_over<2>(ctx, x);
}
