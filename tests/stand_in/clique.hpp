#pragma once
// Communicators over some of the ranks of a case.

#include <dtm/comm/mesh_groups.hpp>

#include <nccl.h>

#include <chrono>
#include <string>
#include <thread>

#include "device.hpp"
#include "support/runner.hpp"

namespace stand_in_test {

using dtm::testing::rank;
using dtm::testing::ranks;

/// The ranks meet, through the library's own wait.
class meeting {
 public:
  meeting() : groups_(dtm::testing::world(), {"cp0"}, {ranks()}) {}
  void meet() { groups_.along(1).barrier({"barrier", "meeting"}).wait(); }
  ncclUniqueId unique_id(int from = 0) {
    ncclUniqueId id = {};
    if (rank() == from) DTM_OK(ncclGetUniqueId(&id));
    groups_.along(1)
        .broadcast(reinterpret_cast<std::uint8_t*>(&id), sizeof id, from, {"broadcast", "id"})
        .wait();
    return id;
  }

 private:
  dtm::comm::mesh_groups groups_;
};

/// A communicator of all ranks, or of `size` with this rank as `place`.
struct clique {
  ncclComm_t comm = nullptr;
  clique() = default;
  explicit clique(meeting& all, int root = 0) : clique(all.unique_id(root), ranks(), rank()) {}
  clique(ncclUniqueId const& id, int size, int place) {
    DTM_OK(cudaSetDevice(rank()));
    DTM_OK(ncclCommInitRank(&comm, size, id, place));
  }
  clique(clique const&) = delete;
  clique& operator=(clique const&) = delete;
  ~clique() {
    if (comm) ncclCommAbort(comm);
  }
  void destroy() { DTM_OK(ncclCommDestroy(std::exchange(comm, nullptr))); }
  void abort() { DTM_OK(ncclCommAbort(std::exchange(comm, nullptr))); }

  ncclResult_t status() const {
    ncclResult_t result = ncclSuccess;
    DTM_OK(ncclCommGetAsyncError(comm, &result));
    return result;
  }
  operator ncclComm_t() const { return comm; }
};

/// Polls until `done`, at most for so long.
template <class Done>
bool within(double seconds, Done done) {
  auto const start = std::chrono::steady_clock::now();
  while (!done()) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds)
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// The stream does not finish by itself.
inline bool stays_busy(cudaStream_t stream, double seconds = 0.05) {
  return !within(seconds, [&] { return cudaStreamQuery(stream) != cudaErrorNotReady; });
}

}  // namespace stand_in_test
