#pragma once
// Streams and events that free themselves, and the order between streams. Nothing here waits.

#include <cuda_runtime_api.h>

#include <utility>

#include "dtm/backend/cuda/status.hpp"

namespace dtm::gpu {

/// A point in the work of a stream; recorded again and again.
class event {
 public:
  event() {
    check(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  event(event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  event& operator=(event&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~event() {
    if (handle_ != nullptr) forget(cudaEventDestroy(handle_));
  }

  cudaEvent_t native() const { return handle_; }
  void record(cudaStream_t stream) { check(cudaEventRecord(handle_, stream), "cudaEventRecord"); }
  /// Whether what was recorded last is complete; true before the first record.
  bool passed() const {
    cudaError_t const status = cudaEventQuery(handle_);
    if (status == cudaErrorNotReady) return forget(status), false;
    check(status, "cudaEventQuery");
    return true;
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

/// A queue of work that waits for no other stream unless told to.
class stream {
 public:
  stream() {
    check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  stream(stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  stream& operator=(stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~stream() {
    if (handle_ != nullptr) forget(cudaStreamDestroy(handle_));
  }

  cudaStream_t native() const { return handle_; }
  /// Whether all work that it was given is complete.
  bool idle() const {
    cudaError_t const status = cudaStreamQuery(handle_);
    if (status == cudaErrorNotReady) return forget(status), false;
    check(status, "cudaStreamQuery");
    return true;
  }

 private:
  cudaStream_t handle_ = nullptr;
};

/// What `later` is given from now on begins after what `earlier` has been given so far.
inline void order(cudaStream_t earlier, cudaStream_t later, event& between) {
  between.record(earlier);
  check(cudaStreamWaitEvent(later, between.native(), 0), "cudaStreamWaitEvent");
}

}  // namespace dtm::gpu
