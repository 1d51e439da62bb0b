#pragma once
// Memory that other processes of the node can map. It has no name in any file system: it is found
// through its owner, by process and descriptor, and vanishes with the last process that maps it,
// however that one ends. What is not touched costs nothing.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <dtm/core/errors.hpp>

namespace dtm::comm {

/// Where a byte of this process lies, for those who map the segment.
struct segment_place {
  int descriptor = -1;
  std::uint64_t bytes = 0;  // of the segment
  std::uint64_t offset = 0;
};

/// A descriptor of so many zero bytes, or -1 with errno set.
inline int make_segment(std::size_t bytes) {
  int const made = memfd_create("dtm", MFD_CLOEXEC);
  if (made < 0 || ftruncate(made, off_t(bytes)) == 0) return made;
  int const cause = errno;
  close(made);
  errno = cause;
  return -1;
}

/// A mapping of a segment, of this process or of another.
class segment {
 public:
  segment() = default;
  segment(segment&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)),
        bytes_(other.bytes_),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  segment& operator=(segment&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~segment() {
    if (start_ != nullptr) munmap(start_, bytes_);
    if (descriptor_ >= 0) close(descriptor_);
  }

  /// A new one. Throws memory_error.
  static segment make(std::size_t bytes) {
    segment result;
    result.descriptor_ = make_segment(bytes);
    if (result.descriptor_ < 0) refuse("makes none", bytes);
    result.map(result.descriptor_, bytes);
    return result;
  }
  /// One of another process. Throws memory_error where the system does not allow that, or it is not
  /// the segment that was meant.
  static segment of(std::int64_t process, int descriptor, std::size_t bytes) {
    std::string const path =
        "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
    int const opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (opened < 0) refuse("does not open " + path, bytes);
    segment result;
    struct stat about {};
    if (fstat(opened, &about) != 0 || std::size_t(about.st_size) != bytes) {
      close(opened);
      errno = EINVAL;
      refuse("has something else at " + path, bytes);
    }
    try {
      result.map(opened, bytes);
    } catch (...) {
      close(opened);
      throw;
    }
    close(opened);
    return result;
  }

  std::byte* start() const { return start_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }  // of the owner

 private:
  void map(int descriptor, std::size_t bytes) {
    void* const mapped =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (mapped == MAP_FAILED) refuse("does not map it", bytes);
    start_ = static_cast<std::byte*>(mapped);
    bytes_ = bytes;
  }
  [[noreturn]] static void refuse(std::string const& what, std::size_t bytes) {
    throw memory_error("dtm shared memory: of a segment of " + std::to_string(bytes) +
                       " bytes the system " + what + " (" + std::strerror(errno) + ")");
  }

  std::byte* start_ = nullptr;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace dtm::comm
