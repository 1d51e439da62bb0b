#pragma once
// The host as a device: memory aligned for vector instructions, tiles exchanged by MPI, loops by the
// vector instructions that all ranks' processors have.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>

#include "dtm/backend/context.hpp"
#include "dtm/backend/host/instructions.hpp"

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
  struct options {
    /// The widest to use. Ranks agree on the narrowest of what they may and can use: replicated
    /// values are the same bits on different processors.
    instruction_set widest = instruction_set::avx512;
  };

  backend(comm::world& ranks, options chosen, comm::call_site where = comm::call_site::current())
      : instructions_(std::min(chosen.widest, widest_instructions())) {
    if (ranks.size() == 1) return;
    auto& all = *ranks.all();
    int const mine = int(instructions_);
    auto const what = all.open({"vector instructions", "", 0, where}, "world", "", 0);
    for (int const theirs : all.gather<int>(std::span(&mine, 1), what))
      instructions_ = std::min(instructions_, instruction_set(theirs));
    all.close(what);
  }
  void attach(memory& storage) {
    storage.allocate = &detail::allocate_aligned;
    storage.release = &detail::release_aligned;
  }
  void connect(comm::mesh_groups&, memory&) {}
  comm::group& along(comm::mesh_groups& groups, unsigned axis_mask) {
    return groups.along(axis_mask);
  }
  void finish() {}

  /// What the loops of this context are compiled for, name_of() says it.
  instruction_set instructions() const { return instructions_; }

 private:
  instruction_set instructions_;
};

}  // namespace dtm
