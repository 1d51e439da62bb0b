#pragma once
// Device memory: one reserved range of addresses that is accessible only while operations run.

#include <cstddef>
#include <cstdint>
#include <map>

namespace stand_in {

class arena {
 public:
  struct block {
    std::size_t bytes = 0;  // asked for
    std::size_t room = 0;   // with the guard behind it
    int device = 0;
    void* pool = nullptr;  // nullptr: cudaMalloc
    bool live = true;      // false: a pool keeps it for later
  };

  static arena& the();

  /// nullptr when the memory is used up. The content is fresh.
  void* allocate(std::size_t bytes, int device, void* pool);
  void release(void* address);

  /// A block that a pool hands out again; its room stays.
  void reuse(void* address, std::size_t bytes);
  void retire(void* address);

  /// What new and freed memory holds: NaNs of every floating type, and a guard behind it. The number
  /// of bytes is the caller's, since a queued operation sees an earlier life of the block.
  void fill(void* address, std::size_t bytes);
  void check_guard(void const* address, std::size_t bytes);

  bool contains(void const* address) const {
    return address >= base_ && address < base_ + capacity_;
  }
  /// The live block around an address; start() of it.
  block const* find(void const* address, char const** start = nullptr) const;
  block const* at(void const* address) const;

  /// True when the bytes lie in one live block.
  bool holds(void const* address, std::size_t bytes) const;

  void check_guards();

  std::size_t capacity() const { return capacity_; }
  std::size_t taken() const { return taken_; }
  std::int64_t live_blocks() const;
  std::int64_t live_bytes() const;

  /// Nested: the first opens, the last closes.
  void open();
  void close();
  bool is_open() const { return open_ > 0; }

 private:
  arena();
  std::size_t take(std::size_t room);
  void shrink(std::size_t used);

  char* base_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;   // the end of the highest block so far
  std::size_t taken_ = 0;  // bytes of all blocks
  int open_ = 0;
  std::map<std::size_t, block> blocks_;
  std::map<std::size_t, std::size_t> gaps_;  // offset, bytes; neighbours are joined
};

/// Device memory is accessible while one of these lives.
class opened {
 public:
  opened() { arena::the().open(); }
  ~opened() { arena::the().close(); }
  opened(opened const&) = delete;
  opened& operator=(opened const&) = delete;
};

}  // namespace stand_in
