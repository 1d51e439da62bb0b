#pragma once
// The one wait of the library. Nothing else waits for a peer: it polls, yields, sleeps, watches for
// a peer's failure notice and for the deadline, and turns both into a typed error. A deadline
// becomes everyone's error: the rank that sees it first asks the others where they are, names those
// that do not answer, and tells all.

#include <mpi.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control.hpp"

namespace dtm::comm {

namespace detail {

/// Longest time that a rank inside the library may take to say where it is. A rank that polls needs
/// milliseconds.
inline constexpr double seconds_to_answer = 0.4;

inline std::string deadline_text(double deadline, signature const& what,
                                 std::vector<std::optional<std::string>> const& answers) {
  std::vector<int> absent;
  std::string present;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank])
      present += "\n  rank " + std::to_string(rank) + " " + *answers[rank];
    else
      absent.push_back(int(rank));
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3g s", deadline);
  std::string text = std::string("deadline of ") + seconds + " exceeded in " + describe(what);
  if (absent.empty())
    text += "\n  nobody is absent: the ranks wait for each other in different operations";
  else
    text += "\n  absent: " + ranks_text(absent) +
            " (no sign of life: outside the library, in a long computation, or gone)";
  return text + present;
}

[[noreturn]] inline void exceed(control& ranks, double deadline, signature const& what) {
  auto const answers = ranks.ask_everyone(seconds_to_answer);
  ranks.declare({failure_kind::deadline, ranks.rank(), deadline_text(deadline, what, answers)});
  ranks.throw_if_failed(describe(what));
  throw deadline_exceeded(describe(what));  // unreachable: declare has recorded a failure
}

/// Tests each request once; true when all are complete.
inline bool all_complete(std::span<MPI_Request> requests, char const* operation) {
  bool complete = true;
  for (auto& request : requests) {
    if (request == MPI_REQUEST_NULL) continue;
    int done = 0;
    mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), operation);
    complete &= done != 0;
  }
  return complete;
}

}  // namespace detail

/// Waits until `complete()` is true, whatever it asks: MPI, a stream of a device. Throws what the
/// failure of a peer makes of it, deadline_exceeded on all ranks, or what `complete` throws; then
/// what it asks about may be outstanding, and whoever owns its memory must keep it (in_flight.hpp).
/// `sleep()` lets others run for a moment, when yielding was not enough.
template <class Complete, class Sleep>
void wait_until(control& ranks, Complete&& complete, double deadline, signature const& what,
                patience patience, Sleep&& sleep) {
  if (complete()) return;
  ranks.enter(what);
  auto const start = clock::now();
  while (!complete()) {
    patience.pause(sleep);
    if (!patience.is_due()) continue;
    ranks.serve();
    if (ranks.failed()) ranks.throw_if_failed(describe(what));
    if (deadline > 0 && seconds_since(start) > deadline) detail::exceed(ranks, deadline, what);
  }
  ranks.leave();
}
template <class Complete>
void wait_until(control& ranks, Complete&& complete, double deadline, signature const& what) {
  wait_until(ranks, std::forward<Complete>(complete), deadline, what, patience(),
             [] { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
}

/// The same for all requests, or error when MPI reports one.
inline void wait(control& ranks, std::span<MPI_Request> requests, double deadline,
                 signature const& what) {
  wait_until(
      ranks, [&] { return detail::all_complete(requests, what.operation); }, deadline, what);
}

}  // namespace dtm::comm
