// Device memory: cudaMalloc and pools in stream order.

#include "memory.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "arena.hpp"
#include "calls.hpp"
#include "capture.hpp"
#include "queue.hpp"
#include "stand_in.hpp"

using namespace stand_in;

/// Blocks that were freed wait here. The stream that freed one may have it again at once, since its
/// own work is in order; others when the free has run.
struct CUmemPoolHandle_st {
  struct spare {
    void* address;
    std::size_t room;
    unsigned long long stream;
    std::shared_ptr<completion> freed;
  };
  std::vector<spare> spares;  // the last one freed is the first to be used again
  int device = 0;
  std::uint64_t threshold = 0;
  std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
  std::map<int, int> switches;

  void* take(std::size_t bytes, CUstream_st* stream);
  void trim(std::uint64_t keep);
};

namespace stand_in {
namespace {

struct state {
  counts so_far;
  std::vector<std::unique_ptr<CUmemPoolHandle_st>> pools;
  std::map<int, cudaMemPool_t> default_pool, current_pool;
};
state& the() {
  static auto* const only = new state;
  return *only;
}

cudaMemPool_t make_pool(int device) {
  the().pools.push_back(std::make_unique<CUmemPoolHandle_st>());
  the().pools.back()->device = device;
  return the().pools.back().get();
}

cudaMemPool_t default_pool(int device) {
  auto& pool = the().default_pool[device];
  if (!pool) pool = the().current_pool[device] = make_pool(device);
  return pool;
}

bool is_pool(cudaMemPool_t pool) {
  return std::any_of(the().pools.begin(), the().pools.end(),
                     [&](auto const& p) { return p.get() == pool; });
}

cudaError_t allocate_from(void** address, std::size_t bytes, cudaMemPool_t pool,
                          cudaStream_t handle) {
  *address = nullptr;
  auto* const stream = stream_of(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return refuse_captured(*stream);  // allocation nodes: left out
  if (bytes == 0) return cudaSuccess;
  void* const block = pool->take(bytes, stream);
  if (!block) return cudaErrorMemoryAllocation;
  ++the().so_far.pool_allocations;
  *address = block;
  return submit_once(handle, "new memory", [=] { arena::the().fill(block, bytes); });
}

cudaError_t free_in_order(void* address, cudaStream_t handle) {
  if (!address) return cudaSuccess;
  auto const* const b = arena::the().at(address);
  auto* const stream = stream_of(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) return refuse_captured(*stream);
  if (!b) return cudaErrorInvalidValue;
  auto* const pool = static_cast<cudaMemPool_t>(b->pool);
  if (!pool) {  // cudaMalloc's memory may be freed in order as well
    auto const work = [address] { arena::the().release(address); };
    return submit_once(handle, "free", work);
  }
  std::size_t const bytes = b->bytes, room = b->room;
  pool->used -= room;
  arena::the().retire(address);
  std::shared_ptr<completion> freed;
  auto const work = [address, bytes] {
    arena::the().check_guard(address, bytes);
    arena::the().fill(address, bytes);
  };
  auto const error = submit_once(handle, "free", work, &freed);
  pool->spares.push_back({address, room, stream->id, freed});
  return error;
}

}  // namespace

void trim_pools() {
  for (auto const& pool : the().pools) pool->trim(pool->threshold);
}

void forget_allocations() {
  the().so_far = {};
  forget_host_allocations();
}

counts count_allocations() {
  counts all = the().so_far;
  all.host_allocations = host_allocations();
  all.live_blocks = arena::the().live_blocks();
  all.live_bytes = arena::the().live_bytes();
  return all;
}

}  // namespace stand_in

void* CUmemPoolHandle_st::take(std::size_t bytes, CUstream_st* stream) {
  auto best = spares.end();
  for (auto spare = spares.begin(); spare != spares.end(); ++spare) {
    if (spare->room < bytes + 256 || (spare->stream != stream->id && !spare->freed->done)) continue;
    if (best == spares.end() || spare->room <= best->room) best = spare;
  }
  void* block = nullptr;
  std::size_t room = 0;
  if (best != spares.end()) {
    block = best->address;
    room = best->room;
    spares.erase(best);
    arena::the().reuse(block, bytes);
  } else {
    block = arena::the().allocate(bytes, device, this);
    if (!block) return nullptr;
    room = arena::the().at(block)->room;
    ++stand_in::the().so_far.driver_allocations;
    reserved += room;
    reserved_high = std::max(reserved_high, reserved);
  }
  used += room;
  used_high = std::max(used_high, used);
  return block;
}

void CUmemPoolHandle_st::trim(std::uint64_t keep) {
  for (auto spare = spares.begin(); spare != spares.end() && reserved > keep;) {
    if (!spare->freed->done) {
      ++spare;
      continue;
    }
    reserved -= spare->room;
    arena::the().release(spare->address);
    spare = spares.erase(spare);
  }
}

extern "C" {

// ---- one at a time -------------------------------------------------------------------------------

cudaError_t cudaMalloc(void** address, size_t bytes) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  *address = arena::the().allocate(bytes, current_device(), nullptr);
  if (!*address) return returned(cudaErrorMemoryAllocation);
  ++the().so_far.driver_allocations;
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  if (!address) return cudaSuccess;
  auto const* const b = arena::the().at(address);
  if (!b) return returned(cudaErrorInvalidValue);
  auto* const pool = static_cast<cudaMemPool_t>(b->pool);
  if (!pool) drain_all(__func__);  // the real one waits as well, except for memory of a pool
  if (pool) pool->used -= b->room, pool->reserved -= b->room;
  arena::the().release(address);
  return returned(broken_device());
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  DTM_STAND_IN_CUDA();
  *total = arena::the().capacity();
  *free = *total - arena::the().taken();
  return cudaSuccess;
}

// ---- pools ---------------------------------------------------------------------------------------

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  DTM_STAND_IN_CUDA();
  if (device < 0 || device >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  *pool = default_pool(device);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  DTM_STAND_IN_CUDA();
  if (device < 0 || device >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  default_pool(device);
  *pool = the().current_pool[device];
  return cudaSuccess;
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  DTM_STAND_IN_CUDA();
  if (device < 0 || device >= the_settings().devices) return returned(cudaErrorInvalidDevice);
  if (!is_pool(pool)) return returned(cudaErrorInvalidValue);
  default_pool(device);
  the().current_pool[device] = pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, cudaMemPoolProps const* properties) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_UNSAFE();
  if (properties->allocType != cudaMemAllocationTypePinned ||
      properties->location.type != cudaMemLocationTypeDevice || properties->location.id < 0 ||
      properties->location.id >= the_settings().devices)
    return returned(cudaErrorInvalidValue);
  *pool = make_pool(properties->location.id);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  DTM_STAND_IN_CUDA();
  if (!is_pool(pool) || pool == the().default_pool[pool->device])
    return returned(cudaErrorInvalidValue);
  if (pool->used > 0)  // legal, but then the memory lives on; here a test wants to know
    die("cudaMemPoolDestroy while " + std::to_string(pool->used) + " bytes of it are in use");
  drain_all(__func__);
  pool->trim(0);
  if (the().current_pool[pool->device] == pool)
    the().current_pool[pool->device] = the().default_pool[pool->device];
  std::erase_if(the().pools, [&](auto const& p) { return p.get() == pool; });
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) {
  DTM_STAND_IN_CUDA();
  if (!is_pool(pool)) return returned(cudaErrorInvalidValue);
  pool->trim(keep);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  DTM_STAND_IN_CUDA();
  if (!is_pool(pool)) return returned(cudaErrorInvalidValue);
  auto* const number = static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      pool->threshold = *number;
      break;
    case cudaMemPoolAttrReservedMemHigh:
      pool->reserved_high = pool->reserved;
      break;
    case cudaMemPoolAttrUsedMemHigh:
      pool->used_high = pool->used;
      break;
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      pool->switches[attribute] = *static_cast<int*>(value);
      break;
    default:
      return returned(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  DTM_STAND_IN_CUDA();
  if (!is_pool(pool)) return returned(cudaErrorInvalidValue);
  auto* const number = static_cast<std::uint64_t*>(value);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      *number = pool->threshold;
      break;
    case cudaMemPoolAttrReservedMemCurrent:
      *number = pool->reserved;
      break;
    case cudaMemPoolAttrReservedMemHigh:
      *number = pool->reserved_high;
      break;
    case cudaMemPoolAttrUsedMemCurrent:
      *number = pool->used;
      break;
    case cudaMemPoolAttrUsedMemHigh:
      *number = pool->used_high;
      break;
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies: {
      auto const set = pool->switches.find(attribute);
      *static_cast<int*>(value) = set == pool->switches.end() ? 1 : set->second;
      break;
    }
    default:
      return returned(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** address, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  DTM_STAND_IN_CUDA();
  if (!is_pool(pool)) return returned(cudaErrorInvalidValue);
  return returned(allocate_from(address, bytes, pool, stream));
}

cudaError_t cudaMallocAsync(void** address, size_t bytes, cudaStream_t stream) {
  DTM_STAND_IN_CUDA();
  int const device = current_device();
  default_pool(device);
  return returned(allocate_from(address, bytes, the().current_pool[device], stream));
}

cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  DTM_STAND_IN_CUDA();
  return returned(free_in_order(address, stream));
}

}  // extern "C"
