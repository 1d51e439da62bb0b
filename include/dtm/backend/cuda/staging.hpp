#pragma once
// Copies between the device and memory that the host may touch, through page-locked buffers: the
// caller's memory is free again when a copy to the device returns, and no call of CUDA blocks.
// `wait(predicate)` is how the library waits.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "dtm/backend/cuda/stream.hpp"

namespace dtm::gpu {

class staging {
 public:
  static constexpr std::size_t buffers = 4, buffer_bytes = std::size_t(1) << 21;

  staging() {
    check(cudaHostAlloc(&memory_, buffers * buffer_bytes, cudaHostAllocDefault), "cudaHostAlloc");
  }
  staging(staging const&) = delete;
  staging& operator=(staging const&) = delete;
  ~staging() { forget(cudaFreeHost(memory_)); }

  template <class Wait>
  void to_device(void* to, void const* from, std::size_t bytes, cudaStream_t stream,
                 Wait const& wait) {
    for (std::size_t at = 0; at < bytes; at += buffer_bytes) {
      std::size_t const piece = std::min(buffer_bytes, bytes - at), buffer = next();
      wait([&] { return used_[buffer].passed(); });
      std::memcpy(start(buffer), static_cast<std::byte const*>(from) + at, piece);
      check(cudaMemcpyAsync(static_cast<std::byte*>(to) + at, start(buffer), piece,
                            cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync to the device");
      used_[buffer].record(stream);
    }
  }

  /// Complete on return.
  template <class Wait>
  void to_host(void* to, void const* from, std::size_t bytes, cudaStream_t stream,
               Wait const& wait) {
    std::size_t const pieces = (bytes + buffer_bytes - 1) / buffer_bytes;
    std::size_t const first = next_;
    auto const length = [&](std::size_t p) {
      return std::min(buffer_bytes, bytes - p * buffer_bytes);
    };
    for (std::size_t p = 0; p < pieces + buffers; ++p) {
      std::size_t const buffer = (first + p) % buffers;
      if (p >= buffers && p - buffers < pieces) {
        std::size_t const done = p - buffers;
        wait([&] { return used_[buffer].passed(); });
        std::memcpy(static_cast<std::byte*>(to) + done * buffer_bytes, start(buffer), length(done));
      }
      if (p >= pieces) continue;
      if (p < buffers) wait([&] { return used_[buffer].passed(); });
      check(cudaMemcpyAsync(start(buffer), static_cast<std::byte const*>(from) + p * buffer_bytes,
                            length(p), cudaMemcpyDeviceToHost, stream),
            "cudaMemcpyAsync to the host");
      used_[buffer].record(stream);
    }
    next_ = (first + pieces) % buffers;
  }

 private:
  std::size_t next() {
    std::size_t const buffer = next_;
    next_ = (next_ + 1) % buffers;
    return buffer;
  }
  std::byte* start(std::size_t buffer) const {
    return static_cast<std::byte*>(memory_) + buffer * buffer_bytes;
  }

  void* memory_ = nullptr;
  std::array<event, buffers> used_;
  std::size_t next_ = 0;
};

}  // namespace dtm::gpu
