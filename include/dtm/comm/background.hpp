#pragma once
// Work that a rank does for its peers, and for itself, whenever it waits for anything: so an operation
// goes on while its rank waits for another one, in whatever order ranks wait.

#include <functional>

namespace dtm::comm {

struct background {
  std::function<bool()> advance;  // true when there is nothing left to do; never waits
  /// Sleeps until a peer may have done something for it, or for a moment; `advance` is asked again
  /// once the peers know that this rank sleeps.
  std::function<void(background&)> sleep;
  int turns = 0;  // that a rank which waits for it yields before it sleeps
  bool is_complete = false;

  bool go_on() { return is_complete || (is_complete = advance()); }
};

}  // namespace dtm::comm
