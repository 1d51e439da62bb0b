#pragma once
// MPI for the length of main: starts it, unless somebody did, and ends it.

#include <mpi.h>

#include "sanitizer.hpp"

namespace dtm::comm {

class environment {
 public:
  environment(int& argc, char**& argv) {
    int started = 0;
    MPI_Initialized(&started);
    if (started) return;
    detail::leaks_not_recorded scope;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    owner_ = true;
  }
  environment(environment const&) = delete;
  environment& operator=(environment const&) = delete;
  ~environment() {
    int ended = 0;
    MPI_Finalized(&ended);
    if (owner_ && !ended) MPI_Finalize();
  }

 private:
  bool owner_ = false;
};

}  // namespace dtm::comm
