// Collectives: what becomes of a layout, and the calls themselves.
#include "dtm/comm/apply.hpp"
#include "dtm/core/space.hpp"
#include "dtm/host.hpp"

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;
using pair_space = space<float, grid>;

auto program(
    context<host, grid>& ctx, pair_tensor<pair_space, c<8>> const& z,
    single_tensor<pair_space, c<8>> const& s,
    tensor<float, layout<grid, shape<batch, tokens, c<8>>, shard<0>, shard<1>, partial<sum>>> const&
        pending) {
  apply<all_gather<cp1>>(ctx, z, "z");
  apply<all_to_all<move<cp1, 3>>>(ctx, z, "z");
  apply<transpose<cp0, cp1>>(ctx, s, "s");
  apply<reduce_scatter<cp1, 2>>(ctx, pending, "pending");
  return apply<all_reduce<cp1>>(ctx, pending, "pending");
}
