#pragma once
// The backend a test runs on. Its sources are compiled once for each (dtm_add_backend_test): host
// unless DTM_TEST_BACKEND says emulated or cuda. Cuda means stand-ins for its libraries and kernels on the
// emulator, unless DTM_TEST_ON_GPU is defined; there DTM_TEST_TRANSPORT=staged_mpi in the
// environment lets ranks share a GPU. On the host DTM_TEST_INSTRUCTIONS=portable or avx2 takes
// narrower vectors than the processor has, DTM_TEST_TRANSPORT=messages or shared_memory demands one, and
// DTM_TEST_RANKS_PER_NODE=2 pretends nodes of two ranks.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#define DTM_TEST_IS_host 1
#define DTM_TEST_IS_emulated 2
#define DTM_TEST_IS_cuda 3
#define DTM_TEST_JOIN(a, b) a##b
#define DTM_TEST_IS(name) DTM_TEST_JOIN(DTM_TEST_IS_, name)
#ifndef DTM_TEST_BACKEND
#define DTM_TEST_BACKEND host
#endif

#if DTM_TEST_IS(DTM_TEST_BACKEND) == 1
#include "dtm/host.hpp"
#elif DTM_TEST_IS(DTM_TEST_BACKEND) == 2
#include "dtm/emulated.hpp"
#elif DTM_TEST_IS(DTM_TEST_BACKEND) == 3
#include "dtm/cuda.cuh"
#ifndef DTM_TEST_ON_GPU
#include "cuda/launch_on_cpu.hpp"
#endif
#endif

#include "dtm/core/space.hpp"

namespace dtm::testing {

using grid = mesh<dp, cp0, cp1>;
using device = DTM_TEST_BACKEND;
using test_context = context<device, grid>;
template <class T>
using space_of = space<T, grid, device>;

inline test_context::options test_options() {
  test_context::options options;
#if DTM_TEST_IS(DTM_TEST_BACKEND) == 1
  char const* const widest = std::getenv("DTM_TEST_INSTRUCTIONS");
  for (auto set : {instruction_set::portable, instruction_set::avx2})
    if (widest != nullptr && std::string_view(widest) == name_of(set)) options.widest = set;
  char const* const how = std::getenv("DTM_TEST_TRANSPORT");
  for (auto transport : {comm::transport::shared_memory, comm::transport::messages})
    if (how != nullptr && std::string_view(how) == comm::name(transport))
      options.transport = transport;
  if (char const* const ranks = std::getenv("DTM_TEST_RANKS_PER_NODE"))
    options.ranks_per_node = std::atoi(ranks);
#endif
#if DTM_TEST_IS(DTM_TEST_BACKEND) == 3
  char const* const transport = std::getenv("DTM_TEST_TRANSPORT");
  if (transport != nullptr && std::string_view(transport) == "staged_mpi")
    options.transport = gpu::transport::staged_mpi;
#ifndef DTM_TEST_ON_GPU
  options.workspace = 65536;  // the stand-in touches all of it
#endif
#endif
  return options;
}

}  // namespace dtm::testing
