// A module in both directions: triangle multiplication by channel all-to-all.
#include "dtm/host.hpp"
#include "dtm/modules/triangle_multiplication.hpp"

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;
using pair_space = space<float, grid>;
using triangle = triangle_multiplication<outgoing, pair_space, 8>;

auto program(context<host, grid>& ctx, triangle const& module,
             pair_tensor<pair_space, c<8>> const& z, pair_tensor<pair_space> const& mask,
             gradients_of_t<triangle>& gradients) {
  auto result = module.forward(ctx, z, mask);
  return module.backward(ctx, std::move(result.saved), z, gradients);
}
