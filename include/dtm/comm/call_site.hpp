#pragma once
// Who calls an operation between ranks. Light: every module includes it.

#include <cstdint>

namespace dtm::comm {

/// File and line of a caller; default arguments and default members of this type capture them. It
/// stands in for std::source_location, which clang 14 does not have.
struct call_site {
  char const* file = "";
  unsigned line = 0;

  constexpr call_site() = default;
  constexpr call_site(char const* file_name, unsigned line_number)
      : file(file_name), line(line_number) {}

  static constexpr call_site current(char const* file = __builtin_FILE(),
                                     unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// Who asks: the operation's name, the tensor or argument it moves, a hash of element type, global
/// shape and layouts, and the place in the source. Ranks must agree on all of it (check level 2).
struct call {
  char const* operation = "";
  char const* tensor = "";
  std::uint64_t layout = 0;
  call_site where = call_site::current();
};

enum class reduction { sum, max, min };

}  // namespace dtm::comm
