// The program of README.md; tests/docs compares the two.
// [readme]
#include <cstdio>
#include <dtm/comm/environment.hpp>
#include <dtm/dtm.hpp>
#include <dtm/host.hpp>
#include <dtm/ops/elementwise.hpp>
using namespace dtm;

int main(int argc, char** argv) {
  comm::environment mpi(argc, argv);
  comm::world world(MPI_COMM_WORLD);
  using grid = mesh<dp, cp0, cp1>;
  context<host, grid> ctx(world, {1, 2, 2});  // 4 ranks as 2x2
  pair_tensor<space<float, grid>, c<8>> z(ctx, extents{bind<batch>(1), bind<tokens>(12)});
  for (float& value : z.to_local()) value = 1;            // this rank's 6x6 of 12x12
  auto const rows = sum_over<2>(ctx, z);                  // cp0: shard<1>  cp1: partial<sum>
  auto const s = apply<all_reduce<cp1>>(ctx, rows, "s");  // cp0: shard<1>  cp1: replicate
  // apply<all_reduce<cp1>>(ctx, s, "s"); does not compile: nothing is pending on cp1
  if (world.rank() == 0) std::printf("sum of a row: %g\n", s.to_local()(0, 0, 0));
}
// [readme]
