#pragma once
// Device memory in the order of one stream. A block that is released may be given out again at
// once, since whoever gets it works on the same stream, or on one that was ordered behind it. So
// after the first two steps of a training nothing is allocated from the driver, and every step has
// the same addresses (law L13).
//
// While a graph is captured, memory comes from a region: what is released then stays with the
// region, for every replay uses it again. Nothing here waits.

#include <cuda_runtime_api.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "dtm/backend/cuda/stream.hpp"

namespace dtm::gpu {

/// Blocks come in sizes of 16 steps a power of two, so that one is reused although its next user
/// wants a little less, and at most a sixteenth of it is idle.
struct size_class {
  static constexpr std::size_t least = 512;
  static constexpr int count = 16 * 40;

  int index = 0;
  std::size_t bytes = least;

  static constexpr size_class of(std::size_t wanted) {
    if (wanted <= least) return {};
    int const octave = std::bit_width(wanted - 1) - 1;  // 2^octave < wanted <= 2^(octave + 1)
    std::size_t const base = std::size_t(1) << octave, step = base / 16;
    std::size_t const steps = (wanted - base + step - 1) / step;
    return {(octave - 9) * 16 + int(steps), base + steps * step};
  }
};

class pool {
  struct block;

 public:
  /// Blocks that belong to a captured graph.
  class region {
    friend class pool;
    std::array<block*, std::size_t(size_class::count)> spare{};
    std::int64_t bytes = 0;
  };

  struct account {
    std::int64_t held = 0, most_held = 0;  // bytes from the driver
    std::int64_t used = 0, most_used = 0;  // of these, what was given out
    std::int64_t driver_allocations = 0;   // calls, ever
    std::int64_t given_back = 0;           // blocks returned to the driver
  };

  pool(int device, cudaStream_t order) : order_(order) {
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.handleTypes = cudaMemHandleTypeNone;
    wanted.location.type = cudaMemLocationTypeDevice;
    wanted.location.id = device;
    check(cudaMemPoolCreate(&driver_, &wanted), "cudaMemPoolCreate");
    std::uint64_t everything = ~std::uint64_t(0);
    check(cudaMemPoolSetAttribute(driver_, cudaMemPoolAttrReleaseThreshold, &everything),
          "cudaMemPoolSetAttribute");
  }
  pool(pool const&) = delete;
  pool& operator=(pool const&) = delete;
  ~pool() {
    for (auto const& [pointer, b] : blocks_) forget(cudaFreeAsync(pointer, order_));
    forget(cudaMemPoolDestroy(driver_));
  }

  /// Content is unspecified. Throws device_error where the device has no more.
  void* allocate(std::size_t bytes) {
    auto const size = size_class::of(bytes);
    block* b = nullptr;
    if (capturing_ != nullptr) b = take(*capturing_, size);
    if (b == nullptr) b = take(main_, size);
    if (b == nullptr) b = from_driver(size, bytes);
    if (b->home != home()) move(*b, home());
    b->used = true;
    account_.used += std::int64_t(size.bytes);
    if (account_.used > account_.most_used) account_.most_used = account_.used;
    return b->pointer;
  }

  void release(void* pointer) noexcept {
    auto const found = blocks_.find(pointer);
    if (found == blocks_.end() || !found->second.used) return;  // not ours: the account shows it
    block& b = found->second;
    if (spoil_) forget(cudaMemsetAsync(pointer, 0xff, b.size.bytes, order_));
    b.used = false;
    account_.used -= std::int64_t(b.size.bytes);
    // what a captured graph was the last to use is used by its replays
    if (capturing_ != nullptr && b.home != capturing_) move(b, capturing_);
    put(b);
  }

  /// Check level 2: released memory is NaN, so that reading it shows.
  void spoil_released(bool yes) { spoil_ = yes; }

  account const& numbers() const { return account_; }
  void restart_peaks() {
    account_.most_held = account_.held;
    account_.most_used = account_.used;
  }

  /// Gives what is not in use back to the driver; not while a graph is captured.
  void trim() {
    if (capturing_ != nullptr) return;
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      block const& b = it->second;
      if (b.used || b.home != &main_) {
        ++it;
        continue;
      }
      check(cudaFreeAsync(it->first, order_), "cudaFreeAsync");
      account_.held -= std::int64_t(b.size.bytes);
      ++account_.given_back;
      it = blocks_.erase(it);
    }
    main_.spare.fill(nullptr);
    main_.bytes = 0;
    for (auto& [pointer, b] : blocks_)
      if (b.home == &main_) main_.bytes += std::int64_t(b.size.bytes);
  }

  // ---- for graphs ----
  /// From here to leave(), memory comes from `kept` and goes there. What it has to ask the driver
  /// for is allocated on `aside`, a stream that is not captured.
  void enter(region& kept, cudaStream_t aside) {
    capturing_ = &kept;
    aside_ = aside;
  }
  void leave() { capturing_ = nullptr; }
  std::int64_t bytes_of(region const& kept) const { return kept.bytes; }
  /// The graph is gone: its blocks are everyone's.
  void dissolve(region& kept) noexcept {
    for (auto& [pointer, b] : blocks_)
      if (b.home == &kept) {
        move(b, &main_);
        if (!b.used) put(b);
      }
    kept.spare.fill(nullptr);
  }

 private:
  struct block {
    void* pointer = nullptr;
    size_class size;
    region* home = nullptr;
    block* next = nullptr;  // of the spare ones
    bool used = false;
  };

  region* home() { return capturing_ != nullptr ? capturing_ : &main_; }
  static block* take(region& from, size_class size) {
    block*& first = from.spare[std::size_t(size.index)];
    return first == nullptr ? nullptr : std::exchange(first, first->next);
  }
  static void put(block& b) noexcept {
    b.next = std::exchange(b.home->spare[std::size_t(b.size.index)], &b);
  }
  static void move(block& b, region* to) noexcept {
    b.home->bytes -= std::int64_t(b.size.bytes);
    to->bytes += std::int64_t(b.size.bytes);
    b.home = to;
  }

  block* from_driver(size_class size, std::size_t wanted) {
    void* pointer = nullptr;
    auto status = ask_driver(&pointer, size.bytes);
    if (status == cudaErrorMemoryAllocation) {
      forget(status);
      trim();
      status = ask_driver(&pointer, size.bytes);
      if (status == cudaErrorMemoryAllocation) refuse(wanted);
    }
    check(status, "cudaMallocFromPoolAsync of " + std::to_string(size.bytes) + " bytes");
    ++account_.driver_allocations;
    account_.held += std::int64_t(size.bytes);
    if (account_.held > account_.most_held) account_.most_held = account_.held;
    block& b = blocks_[pointer];
    b = {pointer, size, home(), nullptr, false};
    b.home->bytes += std::int64_t(size.bytes);
    return &b;
  }

  cudaError_t ask_driver(void** pointer, std::size_t bytes) {
    if (capturing_ == nullptr) return cudaMallocFromPoolAsync(pointer, bytes, driver_, order_);
    auto mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    auto const status = cudaMallocFromPoolAsync(pointer, bytes, driver_, aside_);
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
    return status;
  }

  [[noreturn]] void refuse(std::size_t wanted) const {
    (void)cudaGetLastError();
    std::size_t free = 0, total = 0;
    forget(cudaMemGetInfo(&free, &total));
    throw device_error(
        "dtm cuda: out of memory: " + std::to_string(wanted) +
        " bytes are wanted; this rank holds " + std::to_string(account_.held) + ", of which " +
        std::to_string(account_.used) + " are in use, and the device has " + std::to_string(free) +
        " of " + std::to_string(total) + " free" +
        (capturing_ != nullptr ? "; a graph is being captured, whose memory is its own" : ""));
  }

  cudaStream_t order_, aside_ = nullptr;
  cudaMemPool_t driver_ = nullptr;
  std::unordered_map<void*, block> blocks_;
  region main_;
  region* capturing_ = nullptr;
  account account_;
  bool spoil_ = false;
};

}  // namespace dtm::gpu
