// Page-locked host memory, and what a pointer is.

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "arena.hpp"
#include "calls.hpp"
#include "capture.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "stand_in.hpp"

using namespace stand_in;

namespace stand_in {
namespace {

struct state {
  std::int64_t allocations = 0;
  std::map<char const*, std::size_t> pinned;
  std::map<char const*, std::unique_ptr<char[]>> owned;  // of those, by cudaHostAlloc
};
state& the() {
  static auto* const only = new state;
  return *only;
}

}  // namespace

bool is_pinned_range(void const* address, std::size_t bytes) {
  auto const* const at = static_cast<char const*>(address);
  auto after = the().pinned.upper_bound(at);
  if (after == the().pinned.begin()) return false;
  auto const& [start, length] = *std::prev(after);
  return at + bytes <= start + length;
}

bool is_pinned(void const* address, std::size_t bytes) {
  return is_pinned_range(address, bytes);
}

std::int64_t host_allocations() {
  return the().allocations;
}
void forget_host_allocations() {
  the().allocations = 0;
}

}  // namespace stand_in

extern "C" {

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  auto block = std::make_unique<char[]>(bytes + 255);
  void* start = block.get();
  std::size_t room = bytes + 255;
  std::align(256, bytes, start, room);
  std::fill_n(static_cast<unsigned char*>(start), bytes, 0xff);
  auto* const at = static_cast<char*>(start);
  the().pinned[at] = bytes;
  the().owned[at] = std::move(block);
  ++the().allocations;
  *address = at;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return cudaHostAlloc(address, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* address) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  if (!address) return cudaSuccess;
  auto const at = static_cast<char const*>(address);
  if (!the().owned.contains(at)) return returned(cudaErrorInvalidValue);
  drain_all(__func__);  // as the real one
  the().pinned.erase(at);
  the().owned.erase(at);
  return returned(broken_device());
}

cudaError_t cudaHostRegister(void* address, size_t bytes, unsigned) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  if (!address || bytes == 0) return returned(cudaErrorInvalidValue);
  if (is_pinned_range(address, 1)) return returned(cudaErrorHostMemoryAlreadyRegistered);
  the().pinned[static_cast<char const*>(address)] = bytes;
  ++the().allocations;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* address) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  auto const at = static_cast<char const*>(address);
  if (!the().pinned.contains(at) || the().owned.contains(at))
    return returned(cudaErrorHostMemoryNotRegistered);
  drain_all(__func__);
  the().pinned.erase(at);
  return returned(broken_device());
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  DTM_STAND_IN_CUDA();
  if (!is_pinned_range(host, 1)) return returned(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* address) {
  DTM_STAND_IN_CUDA();
  *attributes = {};
  if (auto const* b = arena::the().find(address)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = b->device;
    attributes->devicePointer = const_cast<void*>(address);
  } else {
    bool const pinned = is_pinned_range(address, 1);
    attributes->type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->device = pinned ? current_device() : -2;
    attributes->hostPointer = const_cast<void*>(address);
    if (pinned) attributes->devicePointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}

}  // extern "C"
