#pragma once
// What every call of a stand-in begins with: it is counted, and fails where a test planted that.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace stand_in {

struct settings {
  std::uint64_t seed = 0;
  int devices = 1;
  std::size_t memory = 0;
  double patience = 60;
};
settings& the_settings();

/// Ends the process with a sentence.
[[noreturn]] void die(std::string const& sentence);

/// Counts the call; the planted result, or 0.
int entered(char const* function);

/// The same for a CUDA function, which also fails once the device is broken.
cudaError_t cuda_entered(char const* function);

/// Remembers an error for cudaGetLastError.
cudaError_t returned(cudaError_t error);

/// The error that sticks, or cudaSuccess.
cudaError_t broken_device();
void break_device(cudaError_t error);

void forget_calls();

/// Of cudaSetDevice, without counting as a call.
int current_device();

/// Takes one of the planted drops, where there is one.
bool drop_this_wait();
bool drop_this_record();
bool corrupt_this_message();

}  // namespace stand_in

#define DTM_STAND_IN_ENTER(Result) \
  if (int const planted = stand_in::entered(__func__)) return Result(planted)

#define DTM_STAND_IN_CUDA() \
  if (cudaError_t const failed = stand_in::cuda_entered(__func__)) return stand_in::returned(failed)
