#pragma once
// Memory that MPI may still touch. An operation that is abandoned (a peer failed, a deadline
// passed) cannot be called back: MPI may write its buffers whenever it makes progress, until
// MPI_Finalize has returned. They are therefore given away here and never freed. The list is the
// only process-wide state of the library, since MPI itself is one per process.

#include <memory>
#include <utility>
#include <vector>

namespace dtm::comm::detail {

/// Keeps `thing` until the process ends. Reachable, so that leak checkers do not mistake it.
/// Without memory for one more entry the program ends here, which is better than memory that MPI
/// overwrites.
inline void keep_until_exit(std::shared_ptr<void> thing) noexcept {
  static auto* const kept = new std::vector<std::shared_ptr<void>>;
  kept->push_back(std::move(thing));
}

}  // namespace dtm::comm::detail
