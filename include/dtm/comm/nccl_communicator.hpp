#pragma once
// One communicator of NCCL and the channel whose ranks it has, in the same order. It never blocks:
// what it begins is asked about by whoever waits (nccl_stream.hpp).

#include <utility>

#include "channel.hpp"
#include "nccl.hpp"

namespace dtm::comm {

class nccl_communicator {
 public:
  /// Begins to connect the ranks of the channel, which all make this call with the same id;
  /// connected when state() is ncclSuccess. The device of the calling thread is the rank's.
  nccl_communicator(std::shared_ptr<channel> ranks, ncclUniqueId const& id)
      : ranks_(std::move(ranks)) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    started_ = ncclCommInitRankConfig(&handle_, ranks_->size(), id, ranks_->rank(), &config);
  }
  nccl_communicator(nccl_communicator const&) = delete;
  nccl_communicator& operator=(nccl_communicator const&) = delete;
  ~nccl_communicator() { abort(); }

  ncclComm_t native() const { return handle_; }
  channel& ranks() const { return *ranks_; }

  /// ncclSuccess, ncclInProgress, or the error that it has come to.
  ncclResult_t state() const {
    if (!nccl::accepted(started_) || handle_ == nullptr) return started_;
    ncclResult_t status = ncclSuccess;
    ncclResult_t const asked = ncclCommGetAsyncError(handle_, &status);
    return asked != ncclSuccess ? asked : status;
  }

  /// Begins to end; every rank does. Ended when state() is ncclSuccess again.
  ncclResult_t finalize() const {
    return handle_ == nullptr ? ncclSuccess : ncclCommFinalize(handle_);
  }
  /// After finalize.
  void destroy() noexcept {
    if (handle_ != nullptr) ncclCommDestroy(std::exchange(handle_, nullptr));
  }
  /// Ends what is under way, on this rank. NCCL then waits for its own kernels, for no peer.
  void abort() noexcept {
    if (handle_ != nullptr) ncclCommAbort(std::exchange(handle_, nullptr));
  }
  /// For a process whose driver is gone.
  void leave() noexcept { handle_ = nullptr; }

 private:
  std::shared_ptr<channel> ranks_;
  ncclComm_t handle_ = nullptr;
  ncclResult_t started_ = ncclSuccess;
};

}  // namespace dtm::comm
