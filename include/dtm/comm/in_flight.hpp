#pragma once
// Memory that MPI may still touch. An operation that is abandoned (a peer failed, a deadline
// passed) cannot be called back: MPI may write its buffers whenever it makes progress, until
// MPI_Finalize has returned. They are therefore given away here and never freed. The list is the
// only process-wide state of the library, since MPI itself is one per process.

#include <mpi.h>

#include <memory>
#include <utility>
#include <vector>

#include "sanitizer.hpp"

namespace dtm::comm::detail {

/// Leaves a communicator alone until MPI ends. Freed earlier, its number could be given to a new
/// one, and a late message for the old would reach the new. MPI_Finalize begins with the attributes
/// of MPI_COMM_SELF, which is where the handle waits. MPI_COMM_NULL: leaks are looked for, no more.
inline void free_at_finalize(MPI_Comm comm) noexcept {
  auto const at_finalize = [](MPI_Comm, int, void* attribute, void*) {
    look_for_leaks();
    std::unique_ptr<MPI_Comm> const held(static_cast<MPI_Comm*>(attribute));
    return *held == MPI_COMM_NULL ? MPI_SUCCESS : MPI_Comm_free(held.get());
  };
  int key = MPI_KEYVAL_INVALID;
  if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &key, nullptr) != MPI_SUCCESS)
    return;
  MPI_Comm_set_attr(MPI_COMM_SELF, key, new MPI_Comm(comm));
  MPI_Comm_free_keyval(&key);  // takes effect when the attribute is gone
}

/// Keeps `thing` until the process ends. Reachable, so that leak checkers do not mistake it.
/// Without memory for one more entry the program ends here, which is better than memory that MPI
/// overwrites.
inline void keep_until_exit(std::shared_ptr<void> thing) noexcept {
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  if (leaks_are_checked && kept->empty()) free_at_finalize(MPI_COMM_NULL);
  kept->push_back(std::move(thing));
}

}  // namespace dtm::comm::detail
