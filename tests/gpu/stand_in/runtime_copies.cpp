// Copies and fills. What is checked as the real ones do: the addresses against the kind, and here
// also that device memory was allocated, to its end.

#include <cstring>
#include <memory>
#include <vector>

#include "arena.hpp"
#include "calls.hpp"
#include "capture.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "stand_in.hpp"

using namespace stand_in;

namespace stand_in {
namespace {

cudaError_t resolve(void const* to, void const* from, std::size_t bytes, cudaMemcpyKind& kind) {
  bool const to_device = is_device(to), from_device = is_device(from);
  auto const actual = to_device ? from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice
                      : from_device ? cudaMemcpyDeviceToHost
                                    : cudaMemcpyHostToHost;
  if (kind == cudaMemcpyDefault) kind = actual;
  if (kind != actual) return cudaErrorInvalidValue;
  for (auto const* side : {to, from})
    if (is_device(side) && !arena::the().holds(side, bytes)) return cudaErrorInvalidValue;
  return cudaSuccess;
}

bool is_pageable(void const* address, std::size_t bytes) {
  return !is_device(address) && !is_pinned_range(address, bytes);
}

/// Pageable sources are read at once and pageable destinations written before the call returns, as
/// the real one does; page-locked memory is read and written when the stream gets there.
cudaError_t copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t handle, char const* who) {
  auto* const stream = stream_of(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (auto const error = resolve(to, from, bytes, kind)) return error;
  bool const from_pageable = is_pageable(from, bytes), to_pageable = is_pageable(to, bytes);
  if (stream->capture && (from_pageable || to_pageable)) return refuse_captured(*stream);
  if (from_pageable) {
    auto const* const at = static_cast<std::byte const*>(from);
    auto const now = std::make_shared<std::vector<std::byte>>(at, at + bytes);
    auto const error = submit_once(handle, "copy of pageable memory",
                                   [=] { std::memcpy(to, now->data(), bytes); });
    if (error) return error;
  } else {
    auto const error = submit_once(handle, "copy", [=] { std::memmove(to, from, bytes); });
    if (error) return error;
  }
  if (to_pageable) drain(*stream, who);
  return broken_device();
}

}  // namespace

bool is_device(void const* address) {
  return arena::the().contains(address);
}

void peek(void* to, void const* device, std::size_t bytes) {
  if (!arena::the().holds(device, bytes)) die("peek at memory that is not of the device");
  opened access;
  std::memcpy(to, device, bytes);
}

void check_guards() {
  arena::the().check_guards();
}

}  // namespace stand_in

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, void const* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  DTM_STAND_IN_CUDA();
  return returned(copy(to, from, bytes, kind, stream, __func__));
}

cudaError_t cudaMemcpy(void* to, void const* from, size_t bytes, cudaMemcpyKind kind) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  if (auto const refused = refuse_implicit(*default_stream())) return returned(refused);
  if (auto const error = copy(to, from, bytes, kind, nullptr, __func__)) return returned(error);
  drain(*default_stream(), __func__);
  return returned(broken_device());
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, void const* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  DTM_STAND_IN_CUDA();
  if (width > to_pitch || width > from_pitch) return returned(cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < height; ++row)
    if (auto const error =
            copy(static_cast<char*>(to) + row * to_pitch,
                 static_cast<char const*>(from) + row * from_pitch, width, kind, stream, __func__))
      return returned(error);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  DTM_STAND_IN_CUDA();
  if (bytes == 0) return cudaSuccess;
  if (!arena::the().holds(to, bytes) && !is_pinned_range(to, bytes))
    return returned(cudaErrorInvalidValue);
  return returned(submit_once(stream, "memset", [=] { std::memset(to, value, bytes); }));
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {  // does not wait, as the real one
  DTM_STAND_IN_UNSAFE();
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

}  // extern "C"
