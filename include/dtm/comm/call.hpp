#pragma once
// What every operation between ranks is told about its caller, and how much is checked. The same
// record feeds the signature that ranks compare, the ledger that tests compare with contracts, and
// the text of every error.

#include <dtm/core/errors.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <string>

namespace dtm::comm {

/// File and line of a caller; default arguments and default members of this type capture them. It
/// stands in for std::source_location, which clang 14 does not have, and is made from one where
/// there is one.
struct call_site {
  char const* file = "";
  unsigned line = 0;

  constexpr call_site() = default;
  constexpr call_site(char const* file_name, unsigned line_number)
      : file(file_name), line(line_number) {}
#ifdef __cpp_lib_source_location
  constexpr call_site(std::source_location where) : file(where.file_name()), line(where.line()) {}
#endif

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

constexpr char const* name(reduction how) {
  return how == reduction::sum ? "sum" : how == reduction::max ? "max" : "min";
}

/// 0: nothing. 1: local arguments. 2: every operation first compares signatures over its ranks, and
/// receive buffers are NaN until data arrives. 3: replicated results are compared bit for bit.
enum class check_level : int { none = 0, cheap = 1, signatures = 2, data = 3 };

struct options {
  double deadline_seconds = 600;  // longest wait for peers; 0 waits for ever
  check_level level = check_level::cheap;

  /// DTM_DEADLINE (seconds) and DTM_CHECK_LEVEL (0-3). Throws argument_error on anything else.
  static options from_environment() {
    options result;
    result.deadline_seconds = number("DTM_DEADLINE", result.deadline_seconds, 1e9);
    double const level = number("DTM_CHECK_LEVEL", double(int(result.level)), 3);
    if (level != std::floor(level))
      throw argument_error("environment variable DTM_CHECK_LEVEL must be 0, 1, 2 or 3");
    result.level = check_level(int(level));
    return result;
  }

 private:
  static double number(char const* variable, double fallback, double largest) {
    char const* const text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return fallback;
    char* end = nullptr;
    double const value = std::strtod(text, &end);
    if (*end != '\0' || !(value >= 0 && value <= largest))
      throw argument_error(std::string("environment variable ") + variable + " is \"" + text +
                           "\"; a number from 0 to " + std::to_string(std::int64_t(largest)) +
                           " is expected");
    return value;
  }
};

}  // namespace dtm::comm
