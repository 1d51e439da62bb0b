#pragma once
// Pieces of blocks of memory. A piece is the smallest that fits, and goes back to its neighbours when
// it is released; the system is never asked. The same calls give the same pieces in every run, as
// offsets in their blocks.
//
// Every piece starts with a header of one cache line, which also keeps tiles of equal powers of two
// from meeting in the same cache sets. Under AddressSanitizer what is not given out may not be touched.

#include <cstddef>
#include <cstdint>

#include "dtm/comm/sanitizer.hpp"

#ifdef DTM_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace dtm::detail {

#ifdef DTM_ADDRESS_SANITIZER
inline constexpr std::size_t gap_behind_a_piece = 64;
inline void forbid(void const* start, std::size_t bytes) {
  __asan_poison_memory_region(start, bytes);
}
inline void allow(void const* start, std::size_t bytes) {
  __asan_unpoison_memory_region(start, bytes);
}
#else
inline constexpr std::size_t gap_behind_a_piece = 0;
inline void forbid(void const*, std::size_t) {}
inline void allow(void const*, std::size_t) {}
#endif

class heap {
 public:
  static constexpr std::size_t alignment = 64;

  heap() = default;
  heap(heap const&) = delete;
  heap& operator=(heap const&) = delete;

  /// What a block needs for one piece of so many bytes.
  static constexpr std::size_t room_for(std::size_t bytes) {
    return sizeof(piece) + rounded_up(bytes + gap_behind_a_piece);
  }

  /// From now on a part of this heap. Aligned, and stays until the heap has gone.
  void add(void* block, std::size_t bytes) {
    auto* const whole = static_cast<piece*>(block);
    *whole = {};
    whole->home = this;
    whole->bytes = bytes / alignment * alignment;
    whole->is_last = true;
    forbid(content_of(whole), whole->bytes - sizeof(piece));
    link(whole);
  }

  /// Null where no piece is large enough. The content is unspecified.
  void* take(std::size_t bytes) {
    std::size_t const room = room_for(bytes);
    piece* found = nullptr;
    for (piece* p = free_; p != nullptr; p = p->next)
      if (p->bytes >= room && (found == nullptr || p->bytes < found->bytes)) found = p;
    if (found == nullptr) return nullptr;
    unlink(found);
    if (found->bytes - room >= least) split(found, room);
    found->is_used = true;
    used_bytes_ += found->bytes;
    if (used_bytes_ > most_used_bytes_) most_used_bytes_ = used_bytes_;
    allow(content_of(found), bytes);
    return content_of(found);
  }

  /// To the heap it came from.
  static void release(void* content) noexcept {
    piece* const p = header_of(content);
    p->home->take_back(p);
  }
  static heap* home_of(void const* content) { return header_of(content)->home; }

  std::size_t used_bytes() const { return used_bytes_; }  // with headers
  std::size_t most_used_bytes() const { return most_used_bytes_; }
  /// The most that take() could give.
  std::size_t largest_free() const {
    std::size_t largest = 0;
    for (piece const* p = free_; p != nullptr; p = p->next)
      if (p->bytes > largest) largest = p->bytes;
    std::size_t const overhead = sizeof(piece) + gap_behind_a_piece;
    return largest > overhead ? largest - overhead : 0;
  }
  std::size_t free_pieces() const {
    std::size_t count = 0;
    for (piece const* p = free_; p != nullptr; p = p->next) ++count;
    return count;
  }

 private:
  struct alignas(alignment) piece {
    heap* home = nullptr;
    std::size_t bytes = 0;                       // with this header
    piece* before = nullptr;                     // its neighbour in the block
    piece *next = nullptr, *previous = nullptr;  // of the free ones
    bool is_last = false, is_used = false;
  };
  static_assert(sizeof(piece) == alignment);
  static constexpr std::size_t least = 2 * sizeof(piece);

  static constexpr std::size_t rounded_up(std::size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
  }
  static void* content_of(piece* p) { return p + 1; }
  static piece* header_of(void const* content) {
    return static_cast<piece*>(const_cast<void*>(content)) - 1;
  }
  static piece* after(piece* p) {
    if (p->is_last) return nullptr;
    return reinterpret_cast<piece*>(reinterpret_cast<std::byte*>(p) + p->bytes);
  }

  void split(piece* p, std::size_t bytes) {
    std::size_t const rest = p->bytes - bytes;
    bool const was_last = p->is_last;
    piece* const following = after(p);
    p->bytes = bytes;
    p->is_last = false;
    piece* const remainder = after(p);
    allow(remainder, sizeof(piece));
    *remainder = {};
    remainder->home = this;
    remainder->bytes = rest;
    remainder->before = p;
    remainder->is_last = was_last;
    if (following != nullptr) following->before = remainder;
    link(remainder);
  }

  void take_back(piece* p) noexcept {
    used_bytes_ -= p->bytes;
    p->is_used = false;
    forbid(content_of(p), p->bytes - sizeof(piece));
    if (piece* const following = after(p); following != nullptr && !following->is_used) {
      unlink(following);
      absorb(p, following);
    }
    if (piece* const before = p->before; before != nullptr && !before->is_used) {
      unlink(before);
      absorb(before, p);
      p = before;
    }
    link(p);
  }

  static void absorb(piece* p, piece* following) {
    p->bytes += following->bytes;
    p->is_last = following->is_last;
    forbid(following, sizeof(piece));
    if (piece* const next = after(p)) next->before = p;
  }

  void link(piece* p) {
    p->previous = nullptr;
    p->next = free_;
    if (free_ != nullptr) free_->previous = p;
    free_ = p;
  }
  void unlink(piece* p) {
    (p->previous != nullptr ? p->previous->next : free_) = p->next;
    if (p->next != nullptr) p->next->previous = p->previous;
  }

  piece* free_ = nullptr;
  std::size_t used_bytes_ = 0, most_used_bytes_ = 0;
};

}  // namespace dtm::detail
