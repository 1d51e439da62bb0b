// The test runner: Catch2 under mpiexec.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"
#include "runner.hpp"

#include <algorithm>
#include <cstdlib>

#if __has_include(<dtm/comm/world.hpp>)
#include <dtm/comm/world.hpp>
namespace dtm::testing {
comm::world& world() {
  static comm::world* only = new comm::world(MPI_COMM_WORLD, comm::options::from_environment());
  return *only;
}
}  // namespace dtm::testing
#endif

namespace dtm::testing {
int rank() { int r = 0; MPI_Comm_rank(MPI_COMM_WORLD, &r); return r; }
int ranks() { int s = 1; MPI_Comm_size(MPI_COMM_WORLD, &s); return s; }
}  // namespace dtm::testing

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int status = Catch::Session().run(argc, argv);
  MPI_Allreduce(MPI_IN_PLACE, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
