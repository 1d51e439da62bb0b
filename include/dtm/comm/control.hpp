#pragma once
// The control plane of a world: a communicator of its own over which ranks tell each other that
// they failed, ask where the others are, and answer. No payload ever travels here, so it works
// while an operation hangs. A world fails once: the first notice decides what every rank throws.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "background.hpp"
#include "failure.hpp"
#include "in_flight.hpp"
#include "mpi.hpp"
#include "signature.hpp"

namespace dtm::comm {

using clock = std::chrono::steady_clock;

inline double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// How a waiting rank spends its time: yields at first, then sleeps. With more ranks than cores
/// this is what lets the others run.
class patience {
 public:
  static constexpr int usual = 20;  // turns until it sleeps
  explicit patience(int turns = usual) : left_(turns) {}

  void pause() {
    pause([] { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
  }
  template <class Sleep>
  void pause(Sleep&& sleep) {
    if (left_ > 0) return --left_, std::this_thread::yield();
    sleep();
  }
  /// Whether it is time for what costs more than a look at a word: serving peers, the clock.
  bool is_due() const { return left_ % 16 == 0; }

 private:
  int left_;
};

class control {
 public:
  /// Takes over `comm`, which must be a duplicate that nobody else uses.
  explicit control(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  control(control const&) = delete;
  control& operator=(control const&) = delete;

  ~control() {
    if (failure_ && mpi::is_running()) drain();
    for (auto& message : outgoing_) detail::keep_until_exit(std::move(message));
    if (!mpi::is_running()) return;
    if (failure_)
      detail::free_at_finalize(comm_);
    else
      MPI_Comm_free(&comm_);
  }

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm native() const { return comm_; }
  std::optional<failure> const& failed() const { return failure_; }

  // ---- what this rank is doing, for those who ask
  // -------------------------------------------------------
  void enter(signature const& what) {
    current_ = what;
    since_ = clock::now();
  }
  void leave() { current_.reset(); }
  void completed(signature const& what) { completed_ = what; }

  /// "waits in all_reduce ... for 1.9 s; completed before: ..."
  std::string where() const {
    std::string text = "is between operations";
    if (current_) {
      char time[32];
      std::snprintf(time, sizeof time, " for %.1f s", seconds_since(since_));
      text = "waits in " + describe(*current_) + time;
    }
    return text + "; completed before: " + (completed_ ? describe(*completed_) : "nothing");
  }

  // ---- messages
  // -----------------------------------------------------------------------------------------
  /// Records the failure of this world and tells every peer, once. Later calls do nothing.
  void declare(failure f) noexcept {
    if (failure_) return;
    try {
      failure_ = std::move(f);
      if (!mpi::is_running()) return;
      for (int peer = 0; peer < size_; ++peer)
        if (peer != rank_)
          send(peer, notice, std::int32_t(failure_->kind), failure_->rank, failure_->text);
      push_out();
    } catch (...) {  // out of memory or MPI is broken: peers end by their deadline
    }
  }

  /// Goes on whenever this rank serves its peers, as long as somebody keeps it.
  void go_on_with(std::shared_ptr<background> const& work) { under_way_.push_back(work); }

  /// Takes in what has arrived: notices are remembered, questions answered.
  void serve() {
    std::erase_if(under_way_, [](auto const& each) {
      auto const work = each.lock();
      return !work || work->go_on();
    });
    reap();
    for (auto tag : {notice, question}) {
      message m;
      while (receive(tag, m)) {
        if (tag == question)
          send(m.sender, answer, 0, rank_, where());
        else if (!failure_)
          failure_ = failure{failure_kind(m.kind), m.rank, m.text};
      }
    }
  }

  /// Throws what a failed world throws: the same error as on the other ranks where all of them are
  /// concerned (mismatch, deadline, replication), peer_failed otherwise. `doing` says what this
  /// rank wanted, may be empty.
  void throw_if_failed(std::string_view doing = {}) const {
    if (!failure_) return;
    switch (failure_->kind) {
      case failure_kind::mesh:
      case failure_kind::mismatch:
      case failure_kind::deadline:
      case failure_kind::replication:
        throw_same(*failure_);
      default:
        break;
    }
    std::string text = failure_->rank == rank_
                           ? "this rank (" + std::to_string(rank_) + ") has failed: "
                           : "rank " + std::to_string(failure_->rank) + " failed: ";
    text += failure_->text;
    if (!doing.empty())
      text += "\n  rank " + std::to_string(rank_) + " stopped in " + std::string(doing);
    throw peer_failed(failure_->rank, text);
  }

  /// Asks every peer where it is. The answers of those who gave one within the time; silent ranks
  /// stay empty. Ends early when a notice arrives.
  std::vector<std::optional<std::string>> ask_everyone(double seconds) {
    std::vector<std::optional<std::string>> answers(std::size_t(size_), std::nullopt);
    answers[std::size_t(rank_)] = where();
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) send(peer, question, 0, rank_, "");
    auto const start = clock::now();
    patience patience;
    int missing = size_ - 1;
    while (missing > 0 && !failure_ && seconds_since(start) < seconds) {
      message m;
      while (receive(answer, m)) {
        auto& mine = answers[std::size_t(m.sender)];
        missing -= !mine;
        mine = m.text;
      }
      serve();
      patience.pause();
    }
    return answers;
  }

 private:
  enum tag : int { notice = 7001, question = 7002, answer = 7003 };

  struct message {
    std::int32_t kind = 0;
    std::int32_t rank = 0;
    std::int32_t sender = 0;
    char text[4084] = "";
  };
  struct sending {
    message content;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void send(int to, tag tag, std::int32_t kind, int rank, std::string_view text) {
    auto m = std::make_shared<sending>();
    m->content.kind = kind;
    m->content.rank = rank;
    m->content.sender = rank_;
    text = text.substr(0, sizeof m->content.text - 1);
    std::memcpy(m->content.text, text.data(), text.size());
    mpi::check(MPI_Isend(&m->content, int(sizeof(message)), MPI_BYTE, to, tag, comm_, &m->request),
               "control send");
    outgoing_.push_back(std::move(m));
  }

  /// A message of this kind, if one has arrived. The receive of a message that was matched before
  /// cannot wait for anyone's decision, only for its bytes.
  bool receive(tag tag, message& m) {
    int arrived = 0;
    MPI_Message matched;
    MPI_Status status;
    mpi::check(MPI_Improbe(MPI_ANY_SOURCE, tag, comm_, &arrived, &matched, &status),
               "control probe");
    if (!arrived) return false;
    MPI_Request request;
    mpi::check(MPI_Imrecv(&m, int(sizeof(message)), MPI_BYTE, &matched, &request),
               "control receive");
    for (int done = 0; !done;)
      mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "control receive");
    return true;
  }

  /// Takes in the notices of those who failed as well, so that MPI does not report them as lost at
  /// its end.
  void drain() noexcept {
    try {
      serve();
    } catch (...) {  // nobody is left to tell
    }
  }

  void reap() {
    std::erase_if(outgoing_, [](auto& m) {
      int done = 0;
      return MPI_Test(&m->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
  }

  /// Gives small messages the progress they need to leave this process, which may not call MPI
  /// again for long.
  void push_out() {
    auto const start = clock::now();
    patience patience;
    for (reap(); !outgoing_.empty() && seconds_since(start) < 0.1; reap()) patience.pause();
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  std::optional<failure> failure_;
  std::optional<signature> current_, completed_;
  clock::time_point since_{};
  std::vector<std::shared_ptr<sending>> outgoing_;
  std::vector<std::weak_ptr<background>> under_way_;
};

}  // namespace dtm::comm
