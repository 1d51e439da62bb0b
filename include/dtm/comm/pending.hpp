#pragma once
// An operation that has begun. It owns the memory MPI works on, so the caller's input may change at
// once and the caller's output is written only by a wait that succeeds; when a wait throws, that
// memory outlives it (in_flight.hpp). By shared memory nobody but this rank writes its memory: the
// output is written while the operation is under way, and nothing outlives it.

#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "channel.hpp"

namespace dtm::comm {

namespace detail {

/// Memory that MPI reads and writes, and what to do when it has.
struct operation {
  channel* ranks = nullptr;
  signature what{};
  std::vector<MPI_Request> requests;
  buffer sent, received;
  std::shared_ptr<void> arguments;         // counts and offsets that MPI keeps reading
  std::function<void(operation&)> next;    // begins the second half, where there is one
  std::function<void(operation&)> finish;  // hands the result over and checks it
  // by shared memory
  std::shared_ptr<background> work;
  std::function<void()> withdraw;
};

/// Of an operation that MPI, or a peer, may still be at.
inline void abandon(std::shared_ptr<operation> begun) noexcept {
  if (begun->withdraw) return begun->withdraw();
  begun->sent.abandon();
  begun->received.abandon();
  keep_until_exit(std::move(begun));
}

}  // namespace detail

/// Must be waited for. Destroyed unwaited it is a programming error, reported and then waited for,
/// unless an exception is passing through.
class [[nodiscard]] pending {
 public:
  pending() = default;
  explicit pending(std::shared_ptr<detail::operation> operation)
      : operation_(std::move(operation)) {}
  pending(pending&&) noexcept = default;
  pending& operator=(pending&& other) noexcept {
    if (this != &other) {
      abandon_or_wait();
      operation_ = std::move(other.operation_);
      exceptions_ = other.exceptions_;
    }
    return *this;
  }
  ~pending() { abandon_or_wait(); }

  /// Throws collective_mismatch, deadline_exceeded, peer_failed or replication_error.
  void wait() {
    auto const operation = std::exchange(operation_, nullptr);
    if (!operation) return;
    try {
      if (operation->work) operation->ranks->wait(*operation->work, operation->what);
      operation->ranks->wait(operation->requests, operation->what);
      if (operation->next) {
        operation->next(*operation);
        operation->ranks->wait(operation->requests, operation->what);
      }
    } catch (...) {
      detail::abandon(operation);
      throw;
    }
    if (operation->finish) operation->finish(*operation);
    operation->ranks->close(operation->what);
  }

 private:
  void abandon_or_wait() noexcept {
    if (!operation_) return;
    if (std::uncaught_exceptions() > exceptions_) return detail::abandon(std::move(operation_));
    try {
      std::fprintf(stderr, "dtm: %s\n  was never waited for; waiting now\n",
                   describe(operation_->what).c_str());
      wait();
    } catch (std::exception const& e) {
      std::fprintf(stderr, "dtm: %s\n",
                   e.what());  // the world has failed: its next operation throws
    }
  }

  std::shared_ptr<detail::operation> operation_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace dtm::comm
