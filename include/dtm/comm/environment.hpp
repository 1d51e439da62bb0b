#pragma once
// MPI for the length of main: starts it, unless somebody did, and ends it.

#include <mpi.h>

#if defined(__SANITIZE_ADDRESS__)
#define DTM_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DTM_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef DTM_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace dtm::comm {

class environment {
 public:
  environment(int& argc, char**& argv) {
    int started = 0;
    MPI_Initialized(&started);
    if (started) return;
#ifdef DTM_ADDRESS_SANITIZER
    __lsan::ScopedDisabler mpi_keeps_its_own;  // a kilobyte that MPICH's start-up never frees
#endif
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
