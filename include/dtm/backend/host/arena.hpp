#pragma once
// The memory of the host: a few big blocks from the system, from which tensors, scratch and the copies
// of messages are cut. What is released is given out again, so that a second step of the same program
// asks the system for nothing, and its pages are there (law L13: and has the same places).
//
// Small pieces have regions of their own: they do not split what a tile needs in one piece. Whoever
// knows what a program needs (a plan) reserves it as one block; otherwise blocks are added, each as
// large as what there is. Pages are the owner's by first touch, huge ones where the system has them;
// what is reserved and not touched costs nothing. A shared arena is made of segments (comm/segment.hpp),
// so that ranks of the node read tiles where they lie.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dtm/backend/host/heap.hpp"
#include "dtm/comm/segment.hpp"
#include "dtm/core/errors.hpp"

namespace dtm {

class arena {
 public:
  /// `reserved` bytes of tensors and copies shall fit into the first block; no more than `limit` bytes
  /// come from the system, 0 is no limit. `shared`: other processes can map it, as place_of says.
  /// Throws memory_error.
  explicit arena(std::size_t reserved = 0, std::size_t limit = 0, bool shared = false)
      : limit_(limit), shared_(shared) {
    blocks_.reserve(64);
    // an eighth for what does not fit into gaps: untouched it costs nothing
    if (reserved > 0 && !(reserved < beyond && add_block(reserved + reserved / 8 + region)))
      refuse(reserved, "options.arena_bytes");
  }
  arena(arena const&) = delete;
  arena& operator=(arena const&) = delete;
  ~arena() {
    for (auto const& b : blocks_) {
      detail::allow(b.start, b.bytes);
      munmap(b.start, b.bytes);
      if (b.descriptor >= 0) close(b.descriptor);
    }
  }

  /// Aligned to 64 bytes, content unspecified. Throws memory_error; `tag` says for whom it was.
  void* allocate(std::size_t bytes, char const* tag = "") {
    detail::heap& home = bytes <= small ? small_ : large_;
    if (void* const found = home.take(bytes)) return found;
    if (&home == &small_) {
      if (void* const found = from_new_region(bytes)) return found;
    } else if (bytes < beyond && add_block(detail::heap::room_for(bytes))) {
      return large_.take(bytes);
    }
    refuse(bytes, tag);
  }
  void release(void* pointer) noexcept { detail::heap::release(pointer); }

  /// Of a piece of a shared arena.
  comm::segment_place place_of(void const* pointer) const {
    auto const* const at = static_cast<std::byte const*>(pointer);
    for (auto const& b : blocks_) {
      auto const* const start = static_cast<std::byte const*>(b.start);
      if (at >= start && at < start + b.bytes)
        return {b.descriptor, b.bytes, std::uint64_t(at - start)};
    }
    throw argument_error("dtm host memory: what other ranks shall read is not of this context");
  }

  std::size_t reserved_bytes() const { return reserved_; }
  /// Of these, what is given out, with the headers of pieces; the regions of small ones count whole.
  std::size_t used_bytes() const { return large_.used_bytes(); }
  std::size_t most_used_bytes() const { return large_.most_used_bytes(); }
  std::size_t largest_free() const { return large_.largest_free(); }
  /// Blocks that the system was asked for, ever.
  std::int64_t system_allocations() const { return std::int64_t(blocks_.size()); }

 private:
  struct block {
    void* start;
    std::size_t bytes;
    int descriptor;  // -1: this process's alone
  };
  static constexpr std::size_t small = std::size_t(32) << 10, region = std::size_t(1) << 20;
  static constexpr std::size_t huge_page = std::size_t(2) << 20;
  static constexpr std::size_t beyond = std::size_t(1) << 56;  // what no process has
  static constexpr std::size_t least_block = std::size_t(8) << 20;
  static constexpr std::size_t most_ahead = std::size_t(1) << 30;

  void* from_new_region(std::size_t bytes) {
    std::size_t const room = region - detail::heap::room_for(0);
    void* start = large_.take(room);
    if (start == nullptr && add_block(region)) start = large_.take(room);
    if (start == nullptr) return nullptr;
    detail::allow(start, room);
    small_.add(start, room);
    return small_.take(bytes);
  }

  /// At least `bytes` more; as much again as there is, where the system has that.
  bool add_block(std::size_t bytes) {
    std::size_t const ahead = std::clamp(reserved_, least_block, most_ahead);
    return (bytes < ahead && map(ahead)) || map(bytes);
  }

  bool map(std::size_t bytes) {
    bytes = (bytes + huge_page - 1) / huge_page * huge_page;
    if (limit_ > 0 && reserved_ + bytes > limit_) return false;
    auto* const start =
        static_cast<std::byte*>(mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (start == MAP_FAILED) {
      cause_ = errno;
      return false;
    }
    // aligned to a huge page; what is too much goes back
    std::size_t const skipped =
        (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
    std::byte* const aligned = start + skipped;
    if (skipped > 0) munmap(start, skipped);
    if (skipped < huge_page) munmap(aligned + bytes, huge_page - skipped);
    int descriptor = -1;
    if (shared_) {
      descriptor = comm::make_segment(bytes);
      if (descriptor < 0 || mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                                 descriptor, 0) == MAP_FAILED) {
        cause_ = errno;
        if (descriptor >= 0) close(descriptor);
        munmap(aligned, bytes);
        return false;
      }
    }
    madvise(aligned, bytes, MADV_HUGEPAGE);  // a wish
    blocks_.push_back({aligned, bytes, descriptor});
    reserved_ += bytes;
    large_.add(aligned, bytes);
    return true;
  }

  [[noreturn]] void refuse(std::size_t bytes, char const* tag) const {
    std::string text = "dtm host memory: no room for " + std::to_string(bytes) + " bytes";
    if (*tag != '\0') text += " of " + std::string(tag);
    text += "; " + std::to_string(used_bytes()) + " of " + std::to_string(reserved_) +
            " reserved bytes are in use, the largest free piece has " +
            std::to_string(largest_free());
    if (limit_ > 0)
      text += ", and options.arena_limit is " + std::to_string(limit_);
    else
      text += ", and the system gives no more (" + std::string(std::strerror(cause_)) + ")";
    throw memory_error(text + "; take more ranks, fewer tokens or a higher limit");
  }

  std::size_t limit_, reserved_ = 0;
  bool shared_;
  int cause_ = ENOMEM;  // of the last refusal of the system
  std::vector<block> blocks_;
  detail::heap large_, small_;
};

}  // namespace dtm
