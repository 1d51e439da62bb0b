#pragma once
// What is planned, and the command line that says it.

#include <cstdint>
#include <string>
#include <vector>

namespace example {

enum class element { fp32, bf16, fp64 };
enum class device { cuda, host };

/// The channels of a pair that are compiled.
inline constexpr int compiled_channels[] = {64, 128};

struct options {
  std::int64_t tokens = 1024;
  int cp0 = 8, cp1 = 8, dp = 1;
  element dtype = element::bf16;
  example::device device = device::cuda;
  int channels = 128;
  int blocks = 4;
  bool model = true;

  int ranks() const { return dp * cp0 * cp1; }
  /// What the tokens are padded to: whole rows of pairs are dealt to all ranks of cp0 and cp1.
  std::int64_t padded() const {
    std::int64_t const parts = std::int64_t(cp0) * cp1;
    return (tokens + parts - 1) / parts * parts;
  }
};

struct command_line {
  options values;
  std::string help;  // not empty: was asked for
};

/// Throws dtm::argument_error.
command_line parse_command_line(std::vector<std::string> const& arguments);

char const* to_string(element value);
char const* to_string(device value);

}  // namespace example
