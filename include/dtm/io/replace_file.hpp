#pragma once
// Replaces a file as a whole: whoever reads it, at any moment and after any failure, finds the old
// content or the new one, complete.
//
// The content goes to a new file in the same folder, is synchronised with the disk, takes the place
// of the old file by one rename, and then the folder is synchronised. A process that is killed on
// the way leaves
// `<file>.partial-<process>-<n>` behind, which nobody reads and which may be deleted.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "dtm/io/readable_file.hpp"

namespace dtm::io::detail {

/// The system calls of a replacement. A test passes its own type, which fails or ends the process
/// at one of them.
struct system_calls {
  int create(char const* path) {
    return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  int open_folder(char const* path) { return ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
  ssize_t write(int file, void const* data, std::size_t count) {
    return ::write(file, data, count);
  }
  int synchronise(int file) { return ::fsync(file); }
  int close(int file) { return ::close(file); }
  int rename(char const* from, char const* to) { return std::rename(from, to); }
  int remove(char const* path) { return ::unlink(path); }
};

template <class System>
class file_replacement {
 public:
  file_replacement(System& system, std::string const& path) : system_(system), path_(path) {
    if (path.empty() || path.back() == '/' || path.find('\0') != std::string::npos)
      refuse_file(quoted(path), "", "is not the path of a file");
    for (int n = 0; file_ < 0; ++n) {
      partial_ = path_ + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(n);
      file_ = system_.create(partial_.c_str());
      if (file_ < 0 && (errno != EEXIST || n == 1000)) fail("cannot be created in this folder");
    }
  }
  file_replacement(file_replacement const&) = delete;
  ~file_replacement() {
    if (file_ >= 0) system_.close(file_);
    if (!partial_.empty()) system_.remove(partial_.c_str());
  }

  void write(std::span<std::byte const> bytes) {
    constexpr std::size_t largest = std::size_t{1} << 30;
    while (!bytes.empty()) {
      ssize_t const count = system_.write(file_, bytes.data(), std::min(bytes.size(), largest));
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) errno = ENOSPC;
      if (count <= 0) fail("cannot be written");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  /// Puts the new file in the place of the old one. Nothing may be written afterwards.
  void commit() {
    if (system_.synchronise(file_) != 0) fail("cannot be brought to the disk");
    if (system_.close(std::exchange(file_, -1)) != 0) fail("cannot be closed");
    if (system_.rename(partial_.c_str(), path_.c_str()) != 0) fail("cannot be renamed");
    partial_.clear();
    synchronise_folder();
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    std::string const reason = system_text(errno);
    refuse_file(path_, "writing",
                what + ": " + reason + "; the file that was there before, if any, is unchanged");
  }

  void synchronise_folder() {
    auto const slash = path_.rfind('/');
    std::string const folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
    int const opened = system_.open_folder(folder.c_str());
    bool good = opened >= 0;
    // Some network file systems have no such operation on folders and say EINVAL.
    if (good) good = system_.synchronise(opened) == 0 || errno == EINVAL;
    std::string const reason = system_text(errno);
    if (opened >= 0) system_.close(opened);
    if (!good)
      refuse_file(path_, "writing",
                  "the new content is in place, but its folder cannot be brought to the disk: " +
                      reason + "; after a loss of power the old content may be back");
  }

  System& system_;
  std::string path_, partial_;
  int file_ = -1;
};

}  // namespace dtm::io::detail
