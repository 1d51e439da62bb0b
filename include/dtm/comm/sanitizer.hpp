#pragma once
// What the leak checker must know about MPI. MPICH keeps a kilobyte from its start, and whatever
// belongs to an abandoned operation: reachable while MPI runs, lost from sight when it has ended.
// So nothing is recorded while MPI starts, and after a failure leaks are looked for before MPI
// ends.

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

namespace dtm::comm::detail {

#ifdef DTM_ADDRESS_SANITIZER
using leaks_not_recorded = __lsan::ScopedDisabler;
inline constexpr bool leaks_are_checked = true;
inline void look_for_leaks() noexcept {
  __lsan_do_leak_check();
}  // once: later calls do nothing
#else
struct leaks_not_recorded {
  leaks_not_recorded() {}
};
inline constexpr bool leaks_are_checked = false;
inline void look_for_leaks() noexcept {}
#endif

}  // namespace dtm::comm::detail
