// Communicators that outlive MPI are not touched any more: the program ends with 0 and without a
// word from MPI.

#include <dtm/comm/environment.hpp>
#include <dtm/comm/mesh_groups.hpp>

#include <cstdio>
#include <memory>

static std::unique_ptr<dtm::comm::world> world;
static std::unique_ptr<dtm::comm::mesh_groups> mesh;

int main(int argc, char** argv) {
  {
    dtm::comm::environment mpi(argc, argv);
    world = std::make_unique<dtm::comm::world>(MPI_COMM_WORLD);
    mesh = std::make_unique<dtm::comm::mesh_groups>(*world, std::vector<std::string>{"cp0"},
                                                    std::vector<int>{world->size()});
  }
  std::printf("rank %d of %d ends after MPI\n", world->rank(), world->size());
  std::fflush(stdout);
}
