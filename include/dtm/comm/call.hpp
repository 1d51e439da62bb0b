#pragma once
// What every operation between ranks is told about its caller, and how much is checked. The same
// record feeds the signature that ranks compare, the ledger that tests compare with contracts, and
// the text of every error.

#include <dtm/comm/call_site.hpp>
#include <dtm/core/errors.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace dtm::comm {

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
