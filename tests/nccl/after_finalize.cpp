// Communicators of NCCL that outlive MPI are ended without a word to anybody.

#include <dtm/backend/cuda/group.hpp>
#include <dtm/comm/environment.hpp>
#include <dtm/comm/sanitizer.hpp>

#include <cstdio>
#include <memory>

static std::unique_ptr<dtm::comm::world> world;
static std::unique_ptr<dtm::comm::mesh_groups> mesh;
static std::unique_ptr<dtm::gpu::stream> compute;
static dtm::memory storage;
static std::unique_ptr<dtm::gpu::cuda_groups> groups;

int main(int argc, char** argv) {
  {
    // communicators are abandoned on purpose, and with them what MPI keeps for them
    dtm::comm::detail::leaks_not_recorded abandoned;
    dtm::comm::environment mpi(argc, argv);
    world = std::make_unique<dtm::comm::world>(MPI_COMM_WORLD);
    mesh = std::make_unique<dtm::comm::mesh_groups>(*world, std::vector<std::string>{"cp0"},
                                                    std::vector<int>{world->size()});
    dtm::gpu::check(cudaSetDevice(world->rank()), "cudaSetDevice");
    compute = std::make_unique<dtm::gpu::stream>();
    storage.allocate = [](void*, std::size_t bytes) {
      void* pointer = nullptr;
      dtm::gpu::check(cudaMallocAsync(&pointer, bytes, compute->native()), "cudaMallocAsync");
      return pointer;
    };
    storage.release = [](void*, void* pointer, std::size_t) noexcept {
      dtm::gpu::forget(cudaFreeAsync(pointer, compute->native()));
    };
    groups = std::make_unique<dtm::gpu::cuda_groups>(*world, *mesh, storage, compute->native(),
                                                     dtm::gpu::transport::nccl);
    groups->along(1).barrier({"barrier"}).wait();
    groups->finish();
    world->meet({"end of MPI"});
  }
  std::printf("rank %d of %d ends after MPI\n", world->rank(), world->size());
  std::fflush(stdout);
}
