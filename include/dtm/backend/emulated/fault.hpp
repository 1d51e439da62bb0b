#pragma once
// What the emulator says when a kernel breaks a rule: one exception, and the words in it.

#include <string>
#include <vector>

#include "dtm/comm/call_site.hpp"
#include "dtm/core/errors.hpp"

namespace dtm {

/// A kernel that ran on the emulator broke a rule of kernels/block.hpp; the text names the kernel,
/// the block, the thread, and what was broken.
class kernel_error : public error {
 public:
  using error::error;
};

}  // namespace dtm

namespace dtm::emulation {

using comm::call_site;

namespace detail {

/// A type as the compiler prints it.
template <class Named>
std::string type_name() {
  std::string const text = __PRETTY_FUNCTION__;
  std::string const before = "Named = ";
  auto const start = text.find(before) + before.size();
  auto const end = text.find(';', start);  // g++ goes on with what std::string is
  return text.substr(start, (end == std::string::npos ? text.size() - 1 : end) - start);
}

/// "0-15, 17" of ascending numbers.
inline std::string ranges(std::vector<int> const& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(numbers[last]);
    i = last + 1;
  }
  return text;
}

/// "thread 3", "threads 0-2".
inline std::string threads_text(std::vector<int> const& threads) {
  return (threads.size() == 1 ? "thread " : "threads ") + ranges(threads);
}

enum class operation { none, sync, any, sync_warp, shuffle_xor, shuffle_down, mma };

/// A barrier in a kernel: which operation, and where it is called. None: the thread has left.
struct site {
  operation called = operation::none;
  call_site where;

  bool operator==(site const& other) const {
    return called == other.called && where.line == other.where.line;
  }
  std::string text() const {
    constexpr char const* names[] = {
        "", "sync", "any", "sync_warp", "shuffle_xor", "shuffle_down", "mma"};
    std::string const file = where.file;
    return std::string(names[int(called)]) + "() at " + file.substr(file.find_last_of('/') + 1) +
           ":" + std::to_string(where.line);
  }
};

}  // namespace detail

}  // namespace dtm::emulation
