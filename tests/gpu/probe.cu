// Whether there is a GPU that can be used: "90 NVIDIA H200", or a sentence and status 1.

#include <cuda_runtime_api.h>

#include <cstdio>

int main() {
  int count = 0;
  cudaDeviceProp facts{};
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&facts, 0);
  if (status == cudaSuccess)
    status = cudaFree(nullptr);  // a GPU that others have to themselves shows here
  if (status != cudaSuccess) {
    std::printf("no GPU can be used here: %s (%s)\n", cudaGetErrorString(status),
                cudaGetErrorName(status));
    return 1;
  }
  std::printf("%d%d %s\n", facts.major, facts.minor, facts.name);
}
