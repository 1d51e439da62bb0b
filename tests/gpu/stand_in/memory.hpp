#pragma once
// Pools of device memory and page-locked host memory.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stand_in {

/// What a synchronisation does: pools give back what they hold beyond their release threshold.
void trim_pools();

/// How a copy sees host memory.
bool is_pinned_range(void const* address, std::size_t bytes);

std::int64_t host_allocations();
void forget_host_allocations();

}  // namespace stand_in
