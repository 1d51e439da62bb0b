#pragma once
// An operation that has begun on the communication stream. Waiting for it makes the compute stream
// wait: the host goes on, and learns of a failure in a later operation or when it waits for the
// device. At check level 3 a replicated result is fetched and compared, which does wait.

#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <utility>

#include <dtm/core/memory.hpp>

#include "nccl_stream.hpp"

namespace dtm::comm {

/// Must be waited for. Until then the operand may not change and the result may not be read; work
/// given to the compute stream afterwards comes after the operation, which goes for the next use of
/// memory that is released then. Destroyed unwaited it is a programming error, reported, unless an
/// exception is passing through; the compute stream waits in either case.
class [[nodiscard]] nccl_pending {
 public:
  /// What is compared over the ranks.
  struct replica {
    memory* storage = nullptr;
    void const* data = nullptr;
    std::size_t bytes = 0;
  };

  nccl_pending() = default;
  nccl_pending(nccl_stream& stream, std::shared_ptr<nccl_stream::operation> begun, replica result)
      : stream_(&stream), begun_(std::move(begun)), result_(result) {}
  nccl_pending(nccl_pending&&) noexcept = default;
  nccl_pending& operator=(nccl_pending&& other) noexcept {
    if (this != &other) {
      abandon_or_wait();
      stream_ = other.stream_;
      begun_ = std::move(other.begun_);
      result_ = other.result_;
      exceptions_ = other.exceptions_;
    }
    return *this;
  }
  ~nccl_pending() { abandon_or_wait(); }

  /// Throws device_error, collective_mismatch, deadline_exceeded, peer_failed or replication_error,
  /// where a failure is known already.
  void wait() {
    auto const begun = std::exchange(begun_, nullptr);
    if (!begun) return;
    stream_->join(*begun);
    stream_->throw_if_failed(begun->what);
    if (result_.data == nullptr || begun->captured) return;
    stream_->wait_for_compute(begun->what);
    auto const copy = std::make_unique_for_overwrite<std::byte[]>(result_.bytes);
    result_.storage->copy_to_host(copy.get(), result_.data, result_.bytes);
    stream_->guarded([&] { begun->ranks->check_replicas(copy.get(), result_.bytes, begun->what); });
  }

 private:
  void abandon_or_wait() noexcept {
    if (!begun_) return;
    try {
      if (std::uncaught_exceptions() > exceptions_) {
        stream_->join(*begun_);
        return;
      }
      std::fprintf(stderr, "dtm: %s\n  was never waited for; waiting now\n",
                   describe(begun_->what).c_str());
      wait();
    } catch (std::exception const& e) {
      std::fprintf(stderr, "dtm: %s\n", e.what());  // the next operation throws as well
    }
  }

  nccl_stream* stream_ = nullptr;
  std::shared_ptr<nccl_stream::operation> begun_;
  replica result_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace dtm::comm
