#pragma once
// The command line. Every rank parses the same arguments; only rank 0 should print what comes of
// it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace example {

inline constexpr int compiled_channels[] = {16, 32, 64};

enum class element { fp32, fp64, bf16 };
enum class schedule { all_to_all, cannon };
enum class backend { host, emulated, cuda };

struct options {
  std::string file;   // default: the structure that comes with the example
  std::string chain;  // empty: all polymer chains
  int cp0 = 0, cp1 = 0;
  int steps = 100;
  int blocks = 4;
  int channels = 32;
  element dtype = element::fp32;
  example::backend backend = example::backend::host;
  std::uint64_t seed = 1;
  std::optional<int> check_level;  // empty: DTM_CHECK_LEVEL, else 1
  schedule triangle = schedule::all_to_all;
  double learning_rate = 4e-3;
  std::string folder = "distogram-out";
  bool verify = false;
};

char const* to_string(element value);
char const* to_string(schedule value);
char const* to_string(backend value);

/// Options, or the help text where --help was asked for.
struct command_line {
  options values;
  std::optional<std::string> help;
};

/// Parses argv[1...]. `ranks`: size of the world; without --mesh the mesh is the most nearly square
/// one of so many ranks. Throws dtm::argument_error (unknown option, impossible value) or
/// dtm::mesh_error (mesh does not fit the ranks), each with one sentence.
command_line parse_command_line(std::vector<std::string> const& arguments, int ranks,
                                std::string const& default_file);

}  // namespace example
