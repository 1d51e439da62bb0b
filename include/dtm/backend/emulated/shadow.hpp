#pragma once
// Shadow memory of shared arrays: for every element who wrote it last, who has read it, and in
// which barrier interval. Two threads that touch one element race unless a barrier that both take
// part in stands between: sync() or any() for all threads, sync_warp() for those of one warp. The
// answer does not depend on the order in which the emulator runs the threads; only accesses that
// are not executed stay unseen.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtm/kernels/block.hpp"

namespace dtm::emulation {

/// When a thread touches something. Both intervals count up and never start again.
struct moment {
  int thread;
  std::uint32_t interval;       // between barriers of the block
  std::uint32_t warp_interval;  // between sync_warp() of the thread's warp
  std::uint32_t first;          // the block's first interval

  int warp() const { return thread / kernels::warp_size; }
};

enum class conflict_kind {
  none,
  both_write,
  write_after_read,
  read_after_write,
  unwritten,
  copied
};

struct conflict {
  conflict_kind kind = conflict_kind::none;
  int other = -1;  // the thread that came first
};

/// One element. Three readers decide whether a later write races, however many there were: the one
/// with the latest interval of its warp, another thread in that same interval, and one of another
/// warp.
class shadow_cell {
 public:
  conflict read(moment const& now) {
    conflict const found = may_read(now);
    if (found.kind != conflict_kind::none) return found;
    if (read_in_ != now.interval) {
      read_in_ = now.interval;
      be_reader(now);
      other_warp_ = -1;
    } else if (reader_ / kernels::warp_size != now.warp()) {
      other_warp_ = std::int16_t(now.thread);
    } else if (now.warp_interval > reader_warp_interval_) {
      be_reader(now);
    } else if (reader_ != now.thread) {
      same_interval_ = std::int16_t(now.thread);
    }
    return {};
  }

  conflict write(moment const& now) {
    conflict const found = may_write(now, false);
    if (found.kind == conflict_kind::none) be_written(now, false);
    return found;
  }

  /// Reads and writes as one; threads that do the same do not race with each other.
  conflict update_atomically(moment const& now) {
    if (written_in_ < now.first) return {conflict_kind::unwritten, -1};
    conflict const found = may_write(now, true);
    if (found.kind == conflict_kind::none) be_written(now, true);
    return found;
  }

  /// An asynchronous copy is under way; the element belongs to it until it has ended.
  conflict begin_copy(moment const& now) {
    conflict const found = may_write(now, false);
    if (found.kind == conflict_kind::none) {
      copier_ = std::int16_t(now.thread);
      copied_in_ = now.interval;
    }
    return found;
  }
  void end_copy(moment const& now) {
    copier_ = -1;
    be_written(now, false);
  }

 private:
  bool unordered(int thread, std::uint32_t warp_interval, moment const& now) const {
    return thread != now.thread &&
           (thread / kernels::warp_size != now.warp() || warp_interval == now.warp_interval);
  }
  bool is_copied(moment const& now) const {  // by this block; a launch may have been abandoned
    return copier_ >= 0 && copied_in_ >= now.first;
  }
  conflict may_read(moment const& now) const {
    if (is_copied(now)) return {conflict_kind::copied, copier_};
    if (written_in_ < now.first) return {conflict_kind::unwritten, -1};
    if (written_in_ == now.interval && unordered(writer_, writer_warp_interval_, now))
      return {conflict_kind::read_after_write, writer_};
    return {};
  }
  conflict may_write(moment const& now, bool atomic) const {
    if (is_copied(now)) return {conflict_kind::copied, copier_};
    if (written_in_ == now.interval && !(atomic && atomic_) &&
        unordered(writer_, writer_warp_interval_, now))
      return {conflict_kind::both_write, writer_};
    if (read_in_ != now.interval) return {};
    if (unordered(reader_, reader_warp_interval_, now))
      return {conflict_kind::write_after_read, reader_};
    if (same_interval_ >= 0 && unordered(same_interval_, reader_warp_interval_, now))
      return {conflict_kind::write_after_read, same_interval_};
    if (other_warp_ >= 0 && other_warp_ / kernels::warp_size != now.warp())
      return {conflict_kind::write_after_read, other_warp_};
    return {};
  }
  void be_reader(moment const& now) {
    reader_ = std::int16_t(now.thread);
    reader_warp_interval_ = now.warp_interval;
    same_interval_ = -1;
  }
  void be_written(moment const& now, bool atomic) {
    writer_ = std::int16_t(now.thread);
    written_in_ = now.interval;
    writer_warp_interval_ = now.warp_interval;
    atomic_ = atomic;
  }

  std::uint32_t written_in_ = 0, writer_warp_interval_ = 0;
  std::uint32_t read_in_ = 0, reader_warp_interval_ = 0;
  std::uint32_t copied_in_ = 0;
  std::int16_t writer_ = -1, copier_ = -1;
  std::int16_t reader_ = -1, same_interval_ = -1, other_warp_ = -1;
  bool atomic_ = false;
};

/// A shared array of a kernel, one for each element type, length and tag.
struct shadowed_array {
  struct alignas(16) storage {
    unsigned char byte[16];
  };

  void const* key;
  std::string (*tag)();
  int count;
  std::size_t element_bytes;
  std::unique_ptr<storage[]> content;
  std::vector<shadow_cell> cells;

  shadowed_array(void const* identity, std::string (*name)(), int elements, std::size_t bytes)
      : key(identity),
        tag(name),
        count(elements),
        element_bytes(bytes),
        content(new storage[(std::size_t(elements) * bytes + 15) / 16]),
        cells(std::size_t(elements)) {}

  void* at(int i) { return content[0].byte + std::size_t(i) * element_bytes; }
};

}  // namespace dtm::emulation
