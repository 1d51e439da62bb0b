#pragma once
// A regular file opened for reading, and the wording that all refusals of files share.
//
// Files are never mapped into memory: a mapped file that somebody truncates ends the process with
// SIGBUS. Here every read goes through pread into memory of our own, and a file that became shorter
// or was rewritten since it was opened is a `file_error`. (A rewrite of equal length that is
// quicker than the time stamps of the file system cannot be seen; compare `content_hash` where that
// matters.)

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "dtm/core/errors.hpp"

namespace dtm::io::detail {

/// Text in quotes for a message: control bytes as \xNN, long text cut.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 80;
  constexpr char const* digits = "0123456789abcdef";
  std::string out = "'";
  for (char c : text.substr(0, longest)) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  out += "'";
  if (text.size() > longest) out += "... (" + std::to_string(text.size()) + " bytes)";
  return out;
}

inline std::string tensor_text(std::string_view name) {
  return "tensor " + quoted(name);
}

/// Throws file_error("<path>: <position>: <text>"); the position may be empty.
[[noreturn]] inline void refuse_file(std::string_view path, std::string_view position,
                                     std::string const& text) {
  std::string message(path);
  if (!position.empty()) message.append(": ").append(position);
  throw file_error(message + ": " + text);
}

inline std::string system_text(int code) {
  return std::strerror(code);
}

class readable_file {
 public:
  /// Opens `path`. Throws file_error when it is missing, not allowed or not a regular file.
  explicit readable_file(std::string path) : path_(std::move(path)) {
    if (path_.find('\0') != std::string::npos)
      refuse_file(detail::quoted(path_), "", "a path cannot contain a NUL byte");
    // O_NONBLOCK: opening a pipe must refuse, not wait for a writer; regular files ignore it.
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0)
      refuse_file(path_, "",
                  "cannot be opened: " + system_text(errno) + "; give the path of a readable file");
    try {
      seen_ = status();
      if (!S_ISREG(seen_.st_mode))
        refuse_file(path_, "", "is not a regular file; give the path of a file on disk");
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  readable_file(readable_file&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        seen_(other.seen_) {}
  readable_file& operator=(readable_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(seen_, other.seen_);
    return *this;
  }
  ~readable_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  std::string const& path() const { return path_; }
  std::int64_t size() const { return seen_.st_size; }

  /// Fills `out` from byte `first` on; `subject` says in a message what is being read. The caller
  /// has checked the range against size(); a short read means that the file changed.
  void read(std::int64_t first, std::span<std::byte> out, std::string_view subject) const {
    std::size_t done = 0;
    while (done < out.size()) {
      ssize_t const got = ::pread(descriptor_, out.data() + done, out.size() - done,
                                  first + static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      std::string const position = "byte " +
                                   std::to_string(first + static_cast<std::int64_t>(done)) + ", " +
                                   std::string(subject);
      if (got < 0) refuse_file(path_, position, "cannot be read: " + system_text(errno));
      if (got == 0)
        refuse_file(path_, position,
                    "the file ends here, but had " + std::to_string(size()) +
                        " bytes when it was opened; it was truncated meanwhile, write it again");
      done += static_cast<std::size_t>(got);
    }
    struct stat const now = status();
    if (now.st_size != seen_.st_size || now.st_mtim.tv_sec != seen_.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != seen_.st_mtim.tv_nsec)
      refuse_file(path_, subject,
                  "the file changed while it was open: " + std::to_string(seen_.st_size) +
                      " bytes when opened, " + std::to_string(now.st_size) +
                      " now; open it again once its writer has finished");
  }

 private:
  struct stat status() const {
    struct stat result {};
    if (::fstat(descriptor_, &result) != 0)
      refuse_file(path_, "", "has no status: " + system_text(errno));
    return result;
  }

  std::string path_;
  int descriptor_ = -1;
  struct stat seen_ {};
};

}  // namespace dtm::io::detail
