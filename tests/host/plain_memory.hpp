#pragma once
// Workspaces for loops that are run without a context.

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "dtm/core/memory.hpp"

namespace dtm::testing {

inline memory& plain_memory() {
  static memory storage = [] {
    memory made;
    made.allocate = [](void*, std::size_t bytes) {
      void* const pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
      return std::memset(pointer, 0xff, bytes);  // NaN: reading before writing is seen
    };
    made.release = [](void*, void* pointer, std::size_t) noexcept { std::free(pointer); };
    return made;
  }();
  return storage;
}

}  // namespace dtm::testing
