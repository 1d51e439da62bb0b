// Whole modules in a unit for nvcc, which makes their kernels on the way.
#include "modules.hpp"

void run_modules_by_nvcc(dtm::testing::gpu_context& ctx) {
  dtm::testing::run_modules<float>(ctx);
}
