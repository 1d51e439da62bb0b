// The code blocks of docs/backends.md about GPUs, compiled and run on stand-ins for CUDA, NCCL and
// cuBLAS, kernels on the emulator; see pages_test.cpp.

#include "cuda/step.hpp"

using namespace dtm;
using namespace dtm::testing;

TEST_CASE("backends.md: options") {
  auto& world = dtm::testing::world();
  // [options]
  context<cuda, grid>::options options;
  options.transport = gpu::transport::staged_mpi;  // default: nccl
  options.products = gpu::products::own;           // default: cublas
  options.device = 0;                              // default: -1
  context<cuda, grid> ctx(world, {1, 1, world.size()}, 0, options);
  // [options]
  CHECK_THAT(ctx.device().describe(), contains("MPI by way of the host, own products"));
}

TEST_CASE("backends.md: capture") {
  auto& world = dtm::testing::world();
  context<cuda, grid> ctx(world, {1, 1, world.size()}, 0, staged());
  transition_step<cuda, float> one(ctx), other(ctx);
  auto const step = [&] { one(); };
  int const steps = 3;
  // [capture]
  step();                           // memory is there and the ranks are connected now
  auto graph = capture(ctx, step);  // recorded, not run
  for (int i = 0; i < steps; ++i) graph.replay();
  ctx.finish();  // the first wait
  // [capture]
  for (int i = 0; i < 1 + steps; ++i) other();
  CHECK(same_bits(one.results(), other.results()));
}

TEST_CASE("backends.md: memory") {
  auto& world = dtm::testing::world();
  context<cuda, grid> ctx(world, {1, 1, world.size()}, 0, staged());
  transition_step<cuda, float> step(ctx);
  // [memory]
  step();
  step();
  auto const before = ctx.device().driver_allocations();
  step();
  CHECK(ctx.device().driver_allocations() == before);
  // [memory]
}
