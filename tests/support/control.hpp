#pragma once
// How the runner's processes talk to each other: short texts over a communicator of their own, gathered on
// rank 0 and answered from there. Nothing here blocks inside MPI: every wait polls, yields, and ends the
// job with a sentence that names the absent ranks once the deadline has passed.

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace dtm::testing {

/// Exit code of a job that the runner ended because a rank never arrived.
inline constexpr int exit_absent = 86;

class control {
 public:
  using clock = std::chrono::steady_clock;

  explicit control(double deadline_seconds) : deadline_(deadline_seconds) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }
  control(control const&) = delete;
  ~control() { MPI_Comm_free(&comm_); }

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm native() const { return comm_; }

  /// Sends one text to a rank.
  void send(int to, std::string const& text, std::string const& what) const {
    MPI_Request request;
    MPI_Isend(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, 0, comm_, &request);
    wait(request, {to}, what, deadline_ + 1);
  }

  /// The text of a rank, if one has arrived.
  bool try_receive(int from, std::string& text, std::string const& what) const {
    int arrived = 0;
    MPI_Status status;
    MPI_Iprobe(from, 0, comm_, &arrived, &status);
    if (!arrived) return false;
    int count = 0;
    MPI_Get_count(&status, MPI_CHAR, &count);
    text.resize(static_cast<std::size_t>(count));
    MPI_Request request;
    MPI_Irecv(text.data(), count, MPI_CHAR, from, 0, comm_, &request);
    wait(request, {from}, what, deadline_);
    return true;
  }

  /// Waits for the text of one rank; rank 0 reports first when several wait for the same absent rank.
  std::string receive(int from, std::string const& what) const {
    std::string text;
    auto const start = clock::now();
    for (int turn = 0; !try_receive(from, text, what); ++turn) {
      pause(turn);
      if (seconds_since(start) > deadline_ + 1) give_up({from}, what, deadline_ + 1);
    }
    return text;
  }

  /// Every rank's text, on every rank.
  std::vector<std::string> exchange(std::string const& mine, std::string const& what) const {
    std::vector<std::string> texts(static_cast<std::size_t>(size_));
    texts[static_cast<std::size_t>(rank_)] = mine;
    if (rank_ != 0) send(0, mine, what);
    std::vector<char> arrived(static_cast<std::size_t>(size_), 0);
    arrived[0] = 1;
    auto const start = clock::now();
    for (int missing = rank_ == 0 ? size_ - 1 : 0, turn = 0; missing > 0; ++turn) {
      for (int from = 1; from < size_; ++from) {
        auto const index = static_cast<std::size_t>(from);
        if (!arrived[index] && try_receive(from, texts[index], what)) arrived[index] = 1, --missing;
      }
      if (missing > 0 && seconds_since(start) > deadline_)
        give_up(absent(arrived), what, deadline_);
      if (missing > 0) pause(turn);
    }
    for (int to = 1; rank_ == 0 && to < size_; ++to)
      for (auto const& text : texts) send(to, text, what);
    if (rank_ != 0)
      for (auto& text : texts) text = receive(0, what);
    return texts;
  }

  /// Names the absent ranks and ends the job.
  [[noreturn]] void give_up(std::vector<int> const& absent, std::string const& what,
                            double seconds) const {
    std::string names;
    for (int rank : absent) names += (names.empty() ? "" : ", ") + std::to_string(rank);
    std::fflush(stdout);
    std::fprintf(stderr, "test runner: rank %s did not arrive within %.1f s (%s); ending the job\n",
                 names.c_str(), seconds, what.c_str());
    std::fflush(stderr);
    std::_Exit(exit_absent);  // mpiexec ends the others; MPI_Abort by two ranks at once can hang it
  }

  static std::vector<int> absent(std::vector<char> const& arrived) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < arrived.size(); ++rank)
      if (!arrived[rank]) ranks.push_back(static_cast<int>(rank));
    return ranks;
  }

  static void pause(int turn) {
    if (turn % 20 != 19) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  static double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>(clock::now() - start).count();
  }

  double deadline() const { return deadline_; }

 private:
  void wait(MPI_Request& request, std::vector<int> const& ranks, std::string const& what,
            double seconds) const {
    auto const start = clock::now();
    int done = 0;
    for (int turn = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done; ++turn) {
      pause(turn);
      if (seconds_since(start) > seconds) give_up(ranks, what, seconds);
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  double deadline_;
};

}  // namespace dtm::testing
