// A complete program for a GPU, with a module and a kernel of its own.
#include <cstdio>
#include <vector>

#include <dtm/comm/environment.hpp>
#include <dtm/cuda.cuh>
#include <dtm/dtm.hpp>
#include <dtm/modules/transition.hpp>
#include "square.hpp"
using namespace dtm;

// [program]
using grid = mesh<dp, cp0, cp1>;
using gpu_space = space<float, grid, cuda>;

void program(comm::world& world) {
  context<cuda, grid> ctx(world, {1, 1, world.size()});
  transition<gpu_space, 32, 64> module(ctx);  // the same source as on the host
  for (auto const& p : named_parameters(module)) p.assign(std::vector<float>(p.count, 0.01f));
  pair_tensor<gpu_space, c<32>> x(ctx, extents{bind<batch>(1), bind<tokens>(16)});
  std::vector<float> values(std::size_t(x.size()), 1);
  x.copy_from_host(values.data());
  auto const [y, saved] = module.forward(ctx, x);
  local::for_each(ctx, y.size(), square<float>{y.data(), x.data()});  // x = y * y
  x.copy_to_host(values.data());
  if (world.rank() == 0) std::printf("%s: %g\n", ctx.device().describe().c_str(), values[0]);
}
// [program]

int main(int argc, char** argv) {
  comm::environment mpi(argc, argv);
  comm::world world(MPI_COMM_WORLD);
  try {
    program(world);
  } catch (device_error const& e) {  // on a machine without a GPU
    std::printf("refused: %s\n", e.what());
    return 3;
  }
}
