#pragma once
// The stream on which all communicators of a context run, and the order of its work with that of
// the compute stream.
//
// Why one stream for all of them. Kernels of two communicators that run at once may each hold what
// the other needs on another rank; NCCL asks for an order of its kernels that is the same on all
// ranks. Ranks call the same operations in the same order (law L9), and a stream keeps the order of
// the calls. So the first operation that is not complete anywhere is the next on every rank that
// takes part in it, what it waits for on the compute stream was begun before it, and no cycle of
// waits can arise. A captured graph keeps that order, since the order of a stream is an edge of it.
// The price: a row shift and a column shift that are in flight together overlap with computation,
// not with each other. Two contexts have two streams, between which nothing keeps an order: what one
// has begun is finished before the other communicates.
//
// An operation begins with a mark in the compute stream, which the communication stream waits for,
// and ends with a mark in the communication stream, which the compute stream waits for when the
// operation is waited for. The host waits for neither, so both can be captured. What is begun
// outside of a capture is waited for outside of it, before the capture begins; what is begun in
// it, in it. The first operations of a communicator connect its ranks: they belong before the first
// capture.
//
// Where the host does wait it uses the library's wait, which here also asks every communicator for
// errors. When the wait throws, all communicators of the context are aborted: a kernel that waits
// for a peer would otherwise occupy the device for ever.

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dtm/backend/cuda/stream.hpp>

#include "nccl_communicator.hpp"
#include "world.hpp"

namespace dtm::comm {

class nccl_stream {
 public:
  /// An operation from its begin until it is known to be complete.
  struct operation {
    signature what;
    channel* ranks;
    bool captured;
    gpu::event done;
    bool joined = false;  // the compute stream waits for it
  };

  nccl_stream(world& ranks, cudaStream_t compute) : world_(ranks), compute_(compute) {}
  nccl_stream(nccl_stream const&) = delete;
  nccl_stream& operator=(nccl_stream const&) = delete;
  ~nccl_stream() { end(); }

  cudaStream_t compute() const { return compute_; }
  cudaStream_t native() const { return stream_.native(); }

  /// Connects the ranks of a channel. Collective over them; the error of one rank is everyone's.
  nccl_communicator& connect(std::shared_ptr<channel> ranks, std::string const& name,
                             call_site where) {
    auto const what = ranks->open({"NCCL communicator", "", 0, where}, name, "", 0);
    ncclUniqueId mine{};
    if (ranks->rank() == 0)
      if (auto const status = ncclGetUniqueId(&mine); status != ncclSuccess)
        fail(status, nullptr, what);
    auto const ids = ranks->gather<char>(std::span<char const>(mine.internal), what);
    std::copy_n(ids.begin(), sizeof mine.internal, mine.internal);
    communicators_.push_back(std::make_unique<nccl_communicator>(std::move(ranks), mine));
    auto& made = *communicators_.back();
    wait_until([&] { return settled(made, what); }, what);
    made.ranks().close(what);
    return made;
  }

  /// Whether the compute stream is being captured.
  bool capturing() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    gpu::check(cudaStreamIsCapturing(compute_, &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  /// Runs on this stream behind everything that the compute stream has been given: first `before`,
  /// ordinary work, then the calls of NCCL in `calls`, as one group.
  template <class Before, class Calls>
  std::shared_ptr<operation> launch(nccl_communicator& communicator, signature const& what,
                                    Before&& before, Calls&& calls) {
    auto begun = std::make_shared<operation>(
        operation{what, &communicator.ranks(), capturing(), gpu::event()});
    if (begun->captured)
      require_nothing_outside(what);
    else
      take_in_completed();
    gpu::order(compute_, stream_.native(), mark_);
    before();
    auto status = ncclGroupStart();
    if (status == ncclSuccess) {
      auto const called = calls();
      status = ncclGroupEnd();
      if (!nccl::accepted(called)) status = called;
    }
    // what is still in progress is not yet in the stream
    wait_until(
        [&] {
          if (!nccl::accepted(status)) fail(status, communicator.native(), what);
          return settled(communicator, what);
        },
        what);
    begun->done.record(stream_.native());
    if (!begun->captured) {
      under_way_.push_back(begun);
      ++not_joined_;
    }
    return begun;
  }

  /// What the compute stream is given from now on comes after the operation.
  void join(operation& begun) {
    if (std::exchange(begun.joined, true)) return;
    if (!begun.captured) --not_joined_;
    gpu::check(cudaStreamWaitEvent(compute_, begun.done.native(), 0), "cudaStreamWaitEvent");
  }

  /// Throws what the failure of a peer, or of a communicator, makes of it.
  void throw_if_failed(signature const& what) {
    guarded([&] {
      world_.ranks().serve();
      world_.ranks().throw_if_failed(describe(what));
      watch(what);
    });
  }

  /// The library's wait, with an eye on all communicators.
  template <class Complete>
  void wait_until(Complete&& complete, signature const& what) {
    guarded([&] {
      comm::wait_until(
          world_.ranks(), [&] { return watch(what), complete(); },
          world_.settings().deadline_seconds, what);
    });
  }

  /// What is between ranks: where it throws, the peers, who may wait for this rank, are told, and
  /// what is under way on it ends.
  template <class Work>
  std::invoke_result_t<Work> guarded(Work&& work) {
    try {
      return work();
    } catch (...) {
      world_.ranks().declare(current_failure(world_.rank()));
      abort();
      throw;
    }
  }

  /// The same in the name of the oldest operation that is under way, as long as there is one: a
  /// deadline then names what does not end, and not the copy behind it.
  template <class Complete>
  void wait_behind(Complete&& complete, signature const& what) {
    if (capturing()) return wait_until(complete, what);
    bool done = false;
    do {
      auto const first = under_way_.empty() ? nullptr : under_way_.front();
      wait_until(
          [&] {
            take_in_completed();
            done = complete();
            return done || (first && (under_way_.empty() || under_way_.front() != first));
          },
          first ? first->what : what);
    } while (!done);
  }

  /// The host waits for the compute stream, and so for every operation that was joined.
  void wait_for_compute(signature const& what) {
    wait_behind([&] { return idle(compute_); }, what);
  }

  /// The host waits for everything that both streams have been given.
  void finish(call who) {
    auto const what = make_signature(who, "device", 0, "", 0);
    if (capturing())
      throw argument_error("dtm nccl: " + describe(what) +
                           " would wait on the host for a stream that is being captured");
    wait_behind([&] { return stream_.idle() && idle(compute_); }, what);
  }

 private:
  void abort() noexcept {
    for (auto& c : communicators_) c->abort();
  }
  static bool idle(cudaStream_t stream) {
    cudaError_t const status = cudaStreamQuery(stream);
    if (status == cudaErrorNotReady) return gpu::forget(status), false;
    gpu::check(status, "cudaStreamQuery");
    return true;
  }

  void watch(signature const& what) {
    for (auto const& c : communicators_) (void)settled(*c, what);
  }
  /// Whether a communicator has done what it was asked for; throws where it has failed.
  bool settled(nccl_communicator const& c, signature const& what) {
    auto const state = c.state();
    if (!nccl::accepted(state)) fail(state, c.native(), what);
    return state == ncclSuccess;
  }

  /// This rank throws device_error, its peers peer_failed.
  [[noreturn]] void fail(ncclResult_t status, ncclComm_t comm, signature const& what) {
    control& ranks = world_.ranks();
    std::string text =
        "dtm nccl: " + nccl::text_of(status, comm) + ", noticed in " + describe(what);
    if (text.find("Duplicate GPU") != std::string::npos)
      text +=
          "; NCCL needs a GPU for every rank: start fewer ranks, or choose transport::staged_mpi "
          "in "
          "the options of the context, which is slow";
    else if (int(world_.level()) < int(check_level::signatures))
      text += "; DTM_CHECK_LEVEL=2 compares what the ranks call";
    if (status == ncclRemoteError) listen();
    if (ranks.failed()) ranks.throw_if_failed(describe(what) + "; here " + text);
    ranks.declare({failure_kind::device, ranks.rank(), text});
    throw device_error(text);
  }

  /// The error is another rank's, whose own words are better and may be under way.
  void listen() {
    control& ranks = world_.ranks();
    auto const start = clock::now();
    patience patience;
    for (ranks.serve(); !ranks.failed() && seconds_since(start) < detail::seconds_to_answer;
         ranks.serve())
      patience.pause();
  }

  void take_in_completed() {
    while (!under_way_.empty() && under_way_.front()->done.passed()) {
      under_way_.front()->ranks->close(under_way_.front()->what);
      under_way_.pop_front();
    }
  }

  void require_nothing_outside(signature const& what) const {
    if (not_joined_ == 0) return;
    throw argument_error("dtm nccl: " + describe(what) + " is captured while " +
                         std::to_string(not_joined_) +
                         " operations that were begun before the capture have not been waited for");
  }

  /// Collective where all is well. After a failure, or where an exception passes through, the
  /// peers need not come, so nothing is waited for.
  void end() noexcept {
    int device = 0;
    if (cudaGetDevice(&device) == cudaErrorCudartUnloading) {  // the process is ending
      for (auto& c : communicators_) c->leave();
      return;
    }
    if (!mpi::is_running() || world_.has_failed() || std::uncaught_exceptions() > exceptions_)
      return abort();
    try {
      auto const what = make_signature({"end of the NCCL communicators"}, "device", 0, "", 0);
      for (auto& c : communicators_)
        if (auto const status = c->finalize(); !nccl::accepted(status))
          fail(status, c->native(), what);
      for (auto& c : communicators_) wait_until([&] { return settled(*c, what); }, what);
      for (auto& c : communicators_) c->destroy();
    } catch (...) {  // has been declared: the next operation on the world says so
      abort();
    }
  }

  world& world_;
  cudaStream_t compute_;
  gpu::stream stream_;
  gpu::event mark_;
  std::vector<std::unique_ptr<nccl_communicator>> communicators_;
  std::deque<std::shared_ptr<operation>> under_way_;
  int not_joined_ = 0;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace dtm::comm
