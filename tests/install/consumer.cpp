// A user's program: whole library, no flags but the include folder.
#if __has_include(<dtm/host.hpp>)
#include <dtm/host.hpp>
#endif
#include <dtm/core/errors.hpp>
#include <dtm/io/safetensors.hpp>

#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Finalize();
  if (rank == 0) std::printf("consumer on %d ranks\n", ranks);
  return 0;
}
