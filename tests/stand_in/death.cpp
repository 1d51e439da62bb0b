// Programs that the stand-ins end with a sentence: death read|write|unallocated|behind|twice|hang.

#include <mpi.h>

#include <cstdio>
#include <string>

#include "gpu/stand_in/stand_in.hpp"

namespace {

float* on_device(std::size_t count) {
  void* memory = nullptr;
  cudaMalloc(&memory, count * sizeof(float));
  return static_cast<float*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::string const how = argc > 1 ? argv[1] : "";
  float* const x = on_device(10);
  volatile float* const touched = x;
  if (how == "read") std::printf("%g\n", double(touched[2]));
  if (how == "write") touched[3] = 1;
  if (how == "unallocated") {
    cudaFree(x);
    std::printf("%g\n", double(touched[0]));
  }
  if (how == "behind") {
    stand_in::enqueue(nullptr, [=] { return x[10] = 1, true; });
    cudaDeviceSynchronize();
    stand_in::check_guards();
  }
  if (how == "behind_then_free") {
    stand_in::enqueue(nullptr, [=] { return x[11] = 1, true; });
    cudaFree(x);
  }
  if (how == "hang") {
    stand_in::set_patience(0.2);
    stand_in::enqueue(
        nullptr, [] { return false; }, "a kernel without end");
    cudaDeviceSynchronize();
  }
  if (how == "nothing") {
    stand_in::enqueue(nullptr, [=] { return x[9] = 1, true; });
    cudaFree(x);
  }
  std::printf("outlived\n");
  MPI_Finalize();
}
