#pragma once
// Which GPU a rank works on, and whether the ranks may: decided together, so that an error is
// everyone's. Collective over the world.

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "dtm/backend/cuda/status.hpp"
#include "dtm/comm/agreement.hpp"

namespace dtm::gpu {

/// How tiles travel between ranks. NCCL needs a GPU for every rank; ranks that share one stage
/// their tiles through the host, which is slow and must be asked for.
enum class transport { nccl, staged_mpi };

constexpr char const* name(transport how) {
  return how == transport::nccl ? "NCCL" : "MPI by way of the host";
}

struct device_facts {
  int ordinal = 0, count = 0;
  int major = 0, minor = 0;
  std::int64_t memory = 0;
  std::string name;
  unsigned char uuid[16] = {};

  /// "NVIDIA H100 (device 2 of 8, compute capability 9.0)"
  std::string text() const {
    return name + " (device " + std::to_string(ordinal) + " of " + std::to_string(count) +
           ", compute capability " + std::to_string(major) + "." + std::to_string(minor) + ")";
  }
};

namespace detail {

/// What ranks tell each other, as plain bytes.
struct machine {
  char host[128] = {};  // its name, and the id of its boot: containers share names
};
struct gpu_of_rank {
  char host[128] = {};
  char text[112] = {};
  unsigned char uuid[16] = {};
};

inline machine this_machine() {
  machine here;
  char boot[64] = "";
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(boot, sizeof boot, file) == nullptr) boot[0] = '\0';
    std::fclose(file);
  }
  char host[64] = "";
  (void)::gethostname(host, sizeof host - 1);
  std::snprintf(here.host, sizeof here.host, "%s %s", host, boot);
  return here;
}

template <class T>
std::vector<T> tell_all(comm::world& ranks, T const& mine, call_site where) {
  auto& all = *ranks.all();
  auto const what = all.open({"choosing a GPU", "", 0, where}, "world", "", 0);
  auto everyone = all.template gather<T>(std::span(&mine, 1), what);
  all.close(what);
  return everyone;
}

/// How many ranks of lower number run on this machine.
inline int rank_on_machine(comm::world& ranks, machine const& here, call_site where) {
  auto const machines = tell_all(ranks, here, where);
  int before = 0;
  for (int r = 0; r < ranks.rank(); ++r)
    before += std::memcmp(machines[std::size_t(r)].host, here.host, sizeof here.host) == 0;
  return before;
}

/// Makes a device current and says what it is. `wanted` is its number, or -1 for the one that this
/// rank comes to in turn.
inline device_facts select(int wanted, int rank_on_machine, call_site where) {
  device_facts facts;
  check(cudaGetDeviceCount(&facts.count), "cudaGetDeviceCount", where);
  if (facts.count == 0) check(cudaErrorNoDevice, "cudaGetDeviceCount", where);
  if (wanted < -1 || wanted >= facts.count)
    throw argument_error("dtm cuda: device " + std::to_string(wanted) +
                         " was asked for, but this process sees " + std::to_string(facts.count) +
                         ", numbered from 0");
  facts.ordinal = wanted >= 0 ? wanted : rank_on_machine % facts.count;
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, facts.ordinal), "cudaGetDeviceProperties", where);
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.memory = std::int64_t(properties.totalGlobalMem);
  std::memcpy(facts.uuid, &properties.uuid, sizeof facts.uuid);
  if (facts.major < 8)
    throw device_error("dtm cuda: " + facts.text() +
                       " is too old; the kernels need compute capability 8.0");
  check(cudaSetDevice(facts.ordinal), "cudaSetDevice", where);
  return facts;
}

/// NCCL hangs or refuses, depending on its version, where two ranks have one GPU.
inline void refuse_shared(comm::world& ranks, machine const& here, device_facts const& facts,
                          transport how, call_site where) {
  gpu_of_rank mine;
  std::memcpy(mine.host, here.host, sizeof mine.host);
  facts.text().copy(mine.text, sizeof mine.text - 1);
  std::memcpy(mine.uuid, facts.uuid, sizeof mine.uuid);
  auto const all = tell_all(ranks, mine, where);
  if (how != transport::nccl) return;
  for (std::size_t first = 0; first < all.size(); ++first) {
    std::vector<int> sharing;
    for (std::size_t r = first; r < all.size(); ++r)
      if (std::memcmp(all[r].uuid, all[first].uuid, sizeof mine.uuid) == 0 &&
          std::memcmp(all[r].host, all[first].host, sizeof mine.host) == 0)
        sharing.push_back(int(r));
    if (sharing.size() > 1)
      throw argument_error("dtm cuda: " + comm::detail::ranks_text(sharing) + " share one GPU, " +
                           all[first].text +
                           ", and NCCL needs one for every rank: start fewer ranks, or choose "
                           "transport::staged_mpi in the options of the context, which is slow");
  }
}

/// Refuses, on all ranks, options that differ between them.
inline void same_options(comm::world& ranks, std::string const& mine, call_site where) {
  struct words {
    char text[64] = {};
  } own;
  mine.copy(own.text, sizeof own.text - 1);
  auto const all = tell_all(ranks, own, where);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (std::strcmp(all[r].text, all[0].text) != 0)
      throw argument_error("dtm cuda: the ranks chose different options: rank 0 " +
                           std::string(all[0].text) + ", rank " + std::to_string(r) + " " +
                           all[r].text);
}

}  // namespace detail

}  // namespace dtm::gpu
