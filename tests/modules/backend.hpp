#pragma once
// The backend a test of modules runs on. Its sources are compiled once for each: host unless
// DTM_TEST_BACKEND says emulated or cuda. Cuda comes with the stand-in where there is no GPU.

#include <cstdint>

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
#endif

#include "dtm/core/space.hpp"

namespace dtm::testing {

using grid = mesh<dp, cp0, cp1>;
using device = DTM_TEST_BACKEND;
using test_context = context<device, grid>;
template <class T>
using space_of = space<T, grid, device>;

}  // namespace dtm::testing
