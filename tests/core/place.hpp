#pragma once
// A mesh position without communicators, with a memory account of its own.

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#include "dtm/core/refusals.hpp"
#include "dtm/core/tensor.hpp"

namespace dtm::testing {

inline void* take_block(void*, std::size_t bytes) {
  void* const pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
inline void give_block_back(void*, void* pointer, std::size_t) noexcept {
  std::free(pointer);
}

/// One rank of a mesh; stands for a context in tests of the types alone.
template <class Mesh>
class place {
 public:
  explicit place(std::vector<int> const& sizes, std::vector<int> const& coordinates = {}) {
    account.allocate = &take_block;
    account.release = &give_block_back;
    for (int axis = 0; axis < Mesh::rank; ++axis) {
      site_.sizes[axis] = sizes[std::size_t(axis)];
      if (!coordinates.empty()) site_.coordinates[axis] = coordinates[std::size_t(axis)];
    }
    site_.storage = &account;
  }
  place(place const&) = delete;
  place& operator=(place const&) = delete;

  site<Mesh> const& where() const { return site_; }
  memory account;

 private:
  site<Mesh> site_;
};

}  // namespace dtm::testing
