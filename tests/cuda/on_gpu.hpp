#pragma once
// What the tests of the GPU backend share: its host code against stand-ins, kernels on the CPU.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "dtm/cuda.cuh"
#include "launch_on_cpu.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace dtm::testing {

using grid = mesh<dp, cp0, cp1>;
using cuda_context = context<cuda, grid>;
using cuda_options = cuda_context::options;

/// The sizes of a mesh of all ranks.
inline std::vector<int> all_on_cp1() {
  return {1, 1, ranks()};
}
/// Ranks may share a GPU; little memory, for all of it is touched.
inline cuda_options staged() {
  return {-1, gpu::transport::staged_mpi, gpu::products::cublas, 65536};
}

inline std::int64_t calls_of(std::initializer_list<char const*> names) {
  std::int64_t calls = 0;
  for (char const* name : names) calls += stand_in::calls(name);
  return calls;
}
/// How often the host asked whether the device is done with something.
inline std::int64_t host_asks() {
  return calls_of({"cudaStreamQuery", "cudaEventQuery"});
}
/// How often it waited for the device, or called what may wait.
inline std::int64_t host_waits() {
  return calls_of({"cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize",
                   "cudaMemcpy", "cudaMemset", "cudaMalloc", "cudaFree", "cudaHostAlloc",
                   "cudaFreeHost", "cudaMemGetInfo"});
}

/// A vector on the device, and back.
template <class T>
scratch<T> on_device(cuda_context& ctx, std::vector<T> const& values) {
  scratch<T> result(ctx.memory(), std::int64_t(values.size()));
  ctx.memory().copy_from_host(result.data(), values.data(), values.size() * sizeof(T));
  return result;
}
template <class T>
std::vector<T> from_device(cuda_context& ctx, T const* data, std::int64_t count) {
  std::vector<T> result(std::size_t(count), T(0.0f));
  ctx.memory().copy_to_host(result.data(), data, result.size() * sizeof(T));
  return result;
}

template <class T>
bool same_bits(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Numbers between -1 and 1 that differ; multiples of 1/64, so that short sums are exact.
template <class T>
std::vector<T> numbers(std::int64_t count, unsigned seed) {
  std::vector<T> result;
  std::uint64_t state = seed * 2654435761u + 1;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    result.push_back(T(float(int(state >> 33) % 65) / 64.0f * (state >> 63 ? 1.0f : -1.0f)));
  }
  return result;
}

/// The words of what `run` throws, if that is an E.
template <class E, class Run>
std::string words_of(Run&& run) {
  try {
    run();
  } catch (E const& e) {
    return e.what();
  }
  return "nothing of that type was thrown";
}

}  // namespace dtm::testing
