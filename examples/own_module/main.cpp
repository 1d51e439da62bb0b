// A module of one's own under context parallelism: mpiexec -n 6 own_module
//
// gated_pair.hpp is the port, under 100 lines of code: contract, forward, hand-written backward.
// serial.hpp is what it must equal. The harness draws inputs, parameters and upstream gradients,
// runs both and compares outputs, input gradients and parameter gradients; it checks collectives
// and saved bytes against the contract, replicas, padding and central differences as well.

#include <dtm/comm/environment.hpp>
#include <dtm/host.hpp>
#include <dtm/testing/parity.hpp>

#include <cstdio>

#include "gated_pair.hpp"
#include "serial.hpp"

namespace example {

using grid = mesh<dp, cp0, cp1>;

template <class T>
bool same_as_serial(context<host, grid>& ctx) {
  testing::serial_oracle const oracle([](auto t) { return serial_gated_pair<decltype(t)>(6, 5); });
  gated_pair<space<T, grid>, 6, 5> module(ctx);
  return testing::parity(ctx, module, oracle, extents{bind<batch>(2), bind<tokens>(12)}).passed();
}

int run(comm::world& world) {
  bool good = true;
  for (int rows = 1; rows <= world.size();
       ++rows) {  // every mesh that these ranks and 12 tokens allow
    int const columns = world.size() / rows;
    if (rows * columns != world.size() || 12 % rows != 0 || 12 % columns != 0) continue;
    context<host, grid> ctx(world, {1, rows, columns});
    bool const fp64 = same_as_serial<double>(ctx), fp32 = same_as_serial<float>(ctx);
    good = good && fp64 && fp32;
  }
  return good ? 0 : 1;
}

}  // namespace example

int main(int count, char** values) {
  dtm::comm::environment mpi(count, values);
  try {
    dtm::comm::world world(MPI_COMM_WORLD);
    return world.run([&] { return example::run(world); });
  } catch (std::exception const& fault) {
    std::fprintf(stderr, "own_module: %s\n", fault.what());
    return 1;
  }
}
