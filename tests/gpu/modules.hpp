#pragma once
// Modules, forward and backward, on a GPU: compiled by the host compiler and by nvcc.

#include <utility>

#include "dtm/cuda.cuh"
#include "dtm/modules/pairformer_noseq_layer.hpp"
#include "dtm/parameters/gradients.hpp"

namespace dtm::testing {

using gpu_grid = mesh<dp, cp0, cp1>;
using gpu_context = context<cuda, gpu_grid>;

/// Every buffer is zero but for what the modules compute of it.
template <class T>
void run_modules(gpu_context& ctx) {
  using on_gpu = space<T, gpu_grid, cuda>;
  using X = pair_tensor<on_gpu, c<32>>;
  auto const extents_of = extents{bind<batch>(1), bind<tokens>(16)};
  X x(ctx, extents_of);
  cotangent_t<X> dy(ctx, extents_of);
  ctx.memory().fill_bytes(x.data(), 0, std::size_t(x.bytes()));
  ctx.memory().fill_bytes(dy.data(), 0, std::size_t(dy.bytes()));
  {
    transition<on_gpu, 32, 64> module(ctx);
    gradients_of_t<decltype(module)> gradients(ctx);
    auto result = module.forward(ctx, x);
    (void)module.backward(ctx, std::move(result.saved), dy, gradients);
  }
  auto const masked = [&](auto module, auto... more) {
    gradients_of_t<decltype(module)> gradients(ctx);
    typename decltype(module)::Mask mask(ctx, extents_of);
    ctx.memory().fill_bytes(mask.data(), 0, std::size_t(mask.bytes()));
    auto result = module.forward(ctx, x, mask, std::move(more)...);
    (void)module.backward(ctx, std::move(result.saved), dy, gradients);
  };
  masked(triangle_multiplication<outgoing, on_gpu, 32>(ctx));
  masked(triangle_attention<starting, on_gpu, 32, 2, 16>(ctx));
  using layer = pairformer_noseq_layer<on_gpu, 32, 2, 16>;
  masked(layer(ctx), layer::dropout::drawn(ctx, {.seed = 1}, 0.25, x));
  ctx.finish();
}

}  // namespace dtm::testing
