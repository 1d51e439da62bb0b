#include "arena.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "calls.hpp"

namespace stand_in {
namespace {

constexpr std::size_t granule = 512;      // as cudaMalloc aligns
constexpr std::size_t guard_bytes = 256;  // at least, behind every block
constexpr std::size_t page = 4096;
constexpr unsigned char nan_byte = 0xff;
constexpr unsigned char guard_byte = 0xa5;

struct sigaction before[2];

/// Says what was touched and hands the signal on: whoever listened before ends the process.
void on_fault(int number, siginfo_t* info, void*) {
  sigaction(number, &before[number == SIGBUS], nullptr);
  auto const& device = arena::the();
  if (!device.contains(info->si_addr)) return;
  char sentence[200];
  char const* start = nullptr;
  auto const* block = device.find(info->si_addr, &start);
  int const length =
      block ? std::snprintf(sentence, sizeof sentence,
                            "stand-in: host code touches device memory at %p, byte %zu of an "
                            "allocation of %zu bytes\n",
                            info->si_addr, std::size_t(static_cast<char*>(info->si_addr) - start),
                            block->bytes)
            : std::snprintf(sentence, sizeof sentence,
                            "stand-in: %s touches device memory at %p, which nobody has "
                            "allocated\n",
                            device.is_open() ? "an operation" : "host code", info->si_addr);
  [[maybe_unused]] auto written = write(STDERR_FILENO, sentence, std::size_t(length));
}

}  // namespace

arena& arena::the() {
  static auto* const only = new arena;  // outlives everything that may still free
  return *only;
}

arena::arena() : capacity_(the_settings().memory) {
  void* const range =
      mmap(nullptr, capacity_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) die("no range of addresses for the device memory");
  base_ = static_cast<char*>(range);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before[0]);
  sigaction(SIGBUS, &action, &before[1]);
}

std::size_t arena::take(std::size_t room) {
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {  // first fit: reuse early and often
    if (gap->second < room) continue;
    auto const [offset, bytes] = *gap;
    gaps_.erase(gap);
    if (bytes > room) gaps_.emplace(offset + room, bytes - room);
    return offset;
  }
  if (capacity_ - used_ < room) return capacity_;
  std::size_t const offset = used_;
  used_ += room;
  std::size_t const first = offset / page * page;
  if (open_ > 0 && mprotect(base_ + first, used_ - first, PROT_READ | PROT_WRITE) != 0)
    die("the device memory cannot be opened");
  return offset;
}

void* arena::allocate(std::size_t bytes, int device, void* pool) {
  if (bytes > capacity_) return nullptr;
  std::size_t const room = (bytes + guard_bytes + granule - 1) / granule * granule;
  std::size_t const offset = take(room);
  if (offset == capacity_) return nullptr;
  taken_ += room;
  blocks_[offset] = {bytes, room, device, pool, true};
  fill(base_ + offset, bytes);
  return base_ + offset;
}

void arena::release(void* address) {
  auto const found = blocks_.find(std::size_t(static_cast<char*>(address) - base_));
  if (found == blocks_.end()) die("a block is released twice");
  auto const [offset, b] = *found;
  if (b.live) check_guard(address, b.bytes);
  fill(address, b.room);
  taken_ -= b.room;
  blocks_.erase(found);
  std::size_t start = offset, room = b.room;
  auto after = gaps_.lower_bound(offset);
  if (after != gaps_.end() && after->first == offset + room) {
    room += after->second;
    after = gaps_.erase(after);
  }
  if (after != gaps_.begin()) {
    auto const previous = std::prev(after);
    if (previous->first + previous->second == offset) {
      start = previous->first;
      room += previous->second;
      gaps_.erase(previous);
    }
  }
  if (start + room == used_) return shrink(start);
  gaps_.emplace(start, room);
}

/// The end of the used part is given back: opening and closing costs time for each page.
void arena::shrink(std::size_t used) {
  std::size_t const first = (used + page - 1) / page * page;
  std::size_t const bytes = used_ > first ? used_ - first : 0;
  used_ = used;
  if (bytes == 0) return;
  if (mprotect(base_ + first, bytes, PROT_NONE) != 0) die("the device memory cannot be closed");
  if (bytes > page * 256) madvise(base_ + first, bytes, MADV_DONTNEED);
}

void arena::reuse(void* address, std::size_t bytes) {
  auto& b = blocks_.at(std::size_t(static_cast<char*>(address) - base_));
  b.bytes = bytes;
  b.live = true;
}

void arena::retire(void* address) {
  blocks_.at(std::size_t(static_cast<char*>(address) - base_)).live = false;
}

void arena::fill(void* address, std::size_t bytes) {
  opened access;
  auto const& b = blocks_.at(std::size_t(static_cast<char*>(address) - base_));
  std::memset(address, nan_byte, bytes);
  std::memset(static_cast<char*>(address) + bytes, guard_byte, b.room - bytes);
}

void arena::check_guard(void const* address, std::size_t bytes) {
  opened access;
  auto const* content = static_cast<unsigned char const*>(address);
  auto const& b = blocks_.at(std::size_t(static_cast<char const*>(address) - base_));
  for (std::size_t i = bytes; i < b.room; ++i)
    if (content[i] != guard_byte)
      die("byte " + std::to_string(i) + " of an allocation of " + std::to_string(bytes) +
          " bytes was written: something wrote behind its end");
}

void arena::check_guards() {
  opened access;
  for (auto const& [offset, b] : blocks_)
    if (b.live && !b.pool) check_guard(base_ + offset, b.bytes);
}

arena::block const* arena::find(void const* address, char const** start) const {
  if (!contains(address)) return nullptr;
  auto const offset = std::size_t(static_cast<char const*>(address) - base_);
  auto after = blocks_.upper_bound(offset);
  if (after == blocks_.begin()) return nullptr;
  auto const& [at, b] = *std::prev(after);
  if (!b.live || offset >= at + b.room) return nullptr;
  if (start) *start = base_ + at;
  return &b;
}

arena::block const* arena::at(void const* address) const {
  char const* start = nullptr;
  auto const* b = find(address, &start);
  return b && start == address ? b : nullptr;
}

bool arena::holds(void const* address, std::size_t bytes) const {
  char const* start = nullptr;
  auto const* b = find(address, &start);
  return b && std::size_t(static_cast<char const*>(address) - start) + bytes <= b->bytes;
}

std::int64_t arena::live_blocks() const {
  std::int64_t live = 0;
  for (auto const& [offset, b] : blocks_) live += b.live;
  return live;
}

std::int64_t arena::live_bytes() const {
  std::int64_t live = 0;
  for (auto const& [offset, b] : blocks_) live += b.live ? std::int64_t(b.bytes) : 0;
  return live;
}

void arena::open() {
  if (open_++ > 0 || used_ == 0) return;
  if (mprotect(base_, used_, PROT_READ | PROT_WRITE) != 0)
    die("the device memory cannot be opened");
}

void arena::close() {
  if (--open_ > 0 || used_ == 0) return;
  if (mprotect(base_, used_, PROT_NONE) != 0) die("the device memory cannot be closed");
}

}  // namespace stand_in
