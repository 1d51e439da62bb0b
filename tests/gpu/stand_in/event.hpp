#pragma once
// What an event remembers: the last record, in a stream or in a capture.

#include "queue.hpp"

struct CUevent_st {
  unsigned flags = 0;
  std::shared_ptr<stand_in::completion> record;
  std::shared_ptr<stand_in::capture> capture;
  std::vector<int> frontier;
};

namespace stand_in {

/// True for a handle that was created and not destroyed.
bool is_event(cudaEvent_t event);

}  // namespace stand_in
