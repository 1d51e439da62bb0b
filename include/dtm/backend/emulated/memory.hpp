#pragma once
// Device memory of the emulator. Every allocation has pages of its own between guard pages, and
// ends, rounded up to 16 bytes, where the guard begins: an access beyond it faults at once, and
// launch() says which allocation it was. Released memory is inaccessible until it is given out
// again.
//
// What the guard cannot see, the bytes up to 16 behind the end and those before the start, holds a
// pattern that is checked after launches and on release, so writing there is found, reading is not;
// guard_before(true), or DTM_EMULATED_GUARD=before in the environment, moves allocations to the
// other end of their pages, and with them the exact side. With AddressSanitizer both are exact.
//
// Addresses are multiples of 16, no more: the most that a kernel's load and store ask for.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "dtm/comm/sanitizer.hpp"

#ifdef DTM_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace dtm::emulation {

namespace detail {

class device_memory {
 public:
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t guard = 16 * page;  // an index may be off by rows
  static constexpr std::size_t alignment = 16;
  static constexpr std::size_t margin = 256;  // bytes of the pattern on either side, at most
  static constexpr std::size_t most_kept = std::size_t(256) << 20;

  /// What an address has to do with an allocation.
  struct place {
    bool known = false, released = false;
    std::int64_t offset = 0;  // from the start of the allocation
    std::size_t bytes = 0;    // of it
  };

  static device_memory& instance() {
    static device_memory* const one = new device_memory;  // outlives static tensors
    return *one;
  }

  void* allocate(std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    std::size_t const room = room_for(bytes);
    auto& kept = kept_[room];
    char* start = nullptr;
    if (kept.empty()) {
      start = map(room);
    } else {
      start = kept.back();
      kept.pop_back();
      kept_bytes_ -= room;
    }
    if (::mprotect(start, room, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    record& taken = records_[start];
    std::size_t const padded = (bytes + alignment - 1) / alignment * alignment;
    taken = {start, room, start + (before_ ? 0 : room - padded), bytes, live_.size(), true};
    live_.push_back(&taken);
    protect(taken);
    return taken.user;
  }

  void release(void* pointer) noexcept {
    std::lock_guard const lock(mutex_);
    record* const found = owner(static_cast<char*>(pointer));
    if (found == nullptr || !found->live || found->user != pointer)
      end("released memory that is not allocated");
    if (overwritten(*found)) end(sentence(*found).c_str());
#ifdef DTM_ADDRESS_SANITIZER
    __asan_unpoison_memory_region(found->start, found->room);
#endif
    found->live = false;
    live_.back()->position = found->position;
    live_[found->position] = live_.back();
    live_.pop_back();
    if (kept_bytes_ + found->room > most_kept) {
      ::munmap(found->start - guard, found->room + 2 * guard);
      records_.erase(found->start);
      return;
    }
    ::mprotect(found->start, found->room, PROT_NONE);
    kept_[found->room].push_back(found->start);
    kept_bytes_ += found->room;
  }

  /// A sentence about an allocation whose surroundings were written to, or nothing. Looks at some
  /// allocations in turn: a launch must stay cheap where thousands are there.
  std::string damage() {
    std::lock_guard const lock(mutex_);
    for (std::size_t i = std::min<std::size_t>(live_.size(), 64); i > 0; --i) {
      next_ = next_ + 1 < live_.size() ? next_ + 1 : 0;
      if (overwritten(*live_[next_])) {
        std::string const text = sentence(*live_[next_]);
        protect(*live_[next_]);  // said once
        return text;
      }
    }
    return "";
  }

  place find(void const* address) {
    std::lock_guard const lock(mutex_);
    auto const p = static_cast<char const*>(address);
    record const* const found = owner(p);
    if (found == nullptr) return {};
    return {true, !found->live, p - found->user, found->bytes};
  }

  void guard_before(bool before) {
    std::lock_guard const lock(mutex_);
    before_ = before;
  }

 private:
  struct record {
    char* start = nullptr;  // of the pages
    std::size_t room = 0;   // bytes of the pages
    char* user = nullptr;
    std::size_t bytes = 0;
    std::size_t position = 0;  // in live_
    bool live = false;
  };
  static constexpr unsigned char pattern = 0xa5;

  device_memory() {
    char const* const side = std::getenv("DTM_EMULATED_GUARD");
    before_ = side != nullptr && std::strcmp(side, "before") == 0;
  }

  // Few sizes, so that blocks are reused: whole pages up to eight, then eight steps a power of two.
  static std::size_t room_for(std::size_t bytes) {
    std::size_t const pages = std::max<std::size_t>(1, (bytes + page - 1) / page);
    std::size_t step = 1;
    while (pages > 16 * step) step *= 2;
    return (pages + step - 1) / step * step * page;
  }
  static char* map(std::size_t room) {
    void* const all = ::mmap(nullptr, room + 2 * guard, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(all) + guard;
  }

  record* owner(char const* address) {  // guards included
    auto next = records_.upper_bound(address + guard);
    if (next == records_.begin()) return nullptr;
    --next;
    record& found = next->second;
    return address < found.start + found.room + guard ? &found : nullptr;
  }

  struct margins {
    std::size_t before, behind;
  };
  static margins margins_of(record const& of) {
    return {std::size_t(of.user - of.start), std::size_t(of.start + of.room - of.user) - of.bytes};
  }
  static void protect(record const& of) {
    auto const [before, behind] = margins_of(of);
#ifdef DTM_ADDRESS_SANITIZER
    __asan_poison_memory_region(of.start, before);
    __asan_poison_memory_region(of.user + of.bytes, behind);
#else
    std::size_t const near = std::min(before, margin);
    std::memset(of.user - near, pattern, near);
    std::memset(of.user + of.bytes, pattern, std::min(behind, margin));
#endif
  }
  static bool overwritten([[maybe_unused]] record const& of) {
#ifdef DTM_ADDRESS_SANITIZER
    return false;
#else
    static constexpr auto expected = [] {
      struct {
        unsigned char byte[margin];
      } all{};
      for (auto& byte : all.byte) byte = pattern;
      return all;
    }();
    auto const [before, behind] = margins_of(of);
    std::size_t const near = std::min(before, margin);
    return std::memcmp(of.user - near, expected.byte, near) != 0 ||
           std::memcmp(of.user + of.bytes, expected.byte, std::min(behind, margin)) != 0;
#endif
  }
  static std::string sentence(record const& of) {
    auto const [before, behind] = margins_of(of);
    auto const is_written = [](char byte) { return static_cast<unsigned char>(byte) != pattern; };
    char const* const end = of.user + of.bytes;
    char const* const stop = end + std::min(behind, margin);
    char const* written = std::find_if(end, stop, is_written);
    bool const beyond = written != stop;
    if (!beyond) written = std::find_if(of.user - std::min(before, margin), of.user, is_written);
    return "writes at byte " + std::to_string(written - of.user) + " of an allocation of " +
           std::to_string(of.bytes) + " bytes, " + (beyond ? "beyond its end" : "before its start");
  }
  [[noreturn]] static void end(char const* text) noexcept {
    std::fprintf(stderr, "dtm emulator: release(): a kernel or its caller %s\n", text);
    std::fflush(stderr);
    std::abort();
  }

  std::mutex mutex_;
  bool before_ = false;
  std::map<char const*, record> records_;  // by start
  std::vector<record*> live_;
  std::map<std::size_t, std::vector<char*>> kept_;  // by room
  std::size_t kept_bytes_ = 0;
  std::size_t next_ = 0;
};

}  // namespace detail

/// For dtm::memory. Aligned to 16 bytes, or throws std::bad_alloc.
inline void* allocate(std::size_t bytes) {
  return detail::device_memory::instance().allocate(bytes);
}
inline void release(void* pointer, std::size_t /*bytes*/) noexcept {
  if (pointer != nullptr) detail::device_memory::instance().release(pointer);
}
/// True: from now on allocations begin right behind their guard, false: they end right before it.
inline void guard_before(bool before) {
  detail::device_memory::instance().guard_before(before);
}

}  // namespace dtm::emulation
