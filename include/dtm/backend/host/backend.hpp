#pragma once
// The host as a device: memory aligned for vector instructions, tiles exchanged by MPI.

#include <cstddef>
#include <cstdlib>
#include <new>

#include "dtm/backend/context.hpp"

namespace dtm {

namespace detail {

inline void* allocate_aligned(void*, std::size_t bytes) {
  void* const pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
inline void release_aligned(void*, void* pointer, std::size_t) noexcept {
  std::free(pointer);
}

}  // namespace detail

template <>
class backend<host> {
 public:
  struct options {};

  backend(comm::world&, options) {}
  void attach(memory& storage) {
    storage.allocate = &detail::allocate_aligned;
    storage.release = &detail::release_aligned;
  }
  void connect(comm::mesh_groups&, memory&) {}
  comm::group& along(comm::mesh_groups& groups, unsigned axis_mask) {
    return groups.along(axis_mask);
  }
  void finish() {}
};

}  // namespace dtm
