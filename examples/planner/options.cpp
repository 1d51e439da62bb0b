#include "options.hpp"

#include <algorithm>
#include <cstdio>

#include <CLI/CLI.hpp>

#include <dtm/core/errors.hpp>

namespace example {
namespace {

constexpr int most_ranks = 65536;

void parse_mesh(std::string const& text, options& values) {
  char rest = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%c", &values.cp0, &values.cp1, &rest) != 2 ||
      values.cp0 < 1 || values.cp1 < 1)
    throw dtm::argument_error("--mesh '" + text +
                              "' is not a mesh; write rows x columns, such as 8x8");
  if (std::int64_t(values.dp) * values.cp0 * values.cp1 > most_ranks)
    throw dtm::argument_error("--mesh " + text + " and --dp " + std::to_string(values.dp) +
                              " are more than " + std::to_string(most_ranks) + " ranks");
}

}  // namespace

char const* to_string(element value) {
  return value == element::fp32 ? "fp32" : value == element::fp64 ? "fp64" : "bf16";
}
char const* to_string(device value) {
  return value == device::host ? "host" : "cuda";
}

command_line parse_command_line(std::vector<std::string> const& arguments) {
  command_line result;
  options& values = result.values;
  std::string mesh = "8x8", dtype = to_string(values.dtype), where = to_string(values.device),
              model = "distogram";
  CLI::App app(
      "Peak memory and messages of a rank, for modules and a model on any mesh; nothing runs.",
      "planner");
  app.set_help_flag("-h,--help", "this text");
  app.add_option("--tokens", values.tokens, "N; the pair is N x N")
      ->check(CLI::Range(std::int64_t(1), std::int64_t(1) << 24))
      ->capture_default_str();
  app.add_option("--mesh", mesh, "cp0 x cp1")->capture_default_str();
  app.add_option("--dp", values.dp, "ranks of data parallelism, each with a sample of its own")
      ->check(CLI::Range(1, most_ranks))
      ->capture_default_str();
  app.add_option("--dtype", dtype, "of values and messages; bf16 is storage")
      ->check(CLI::IsMember({"fp32", "fp64", "bf16"}))
      ->capture_default_str();
  app.add_option("--device", where, "as which it is planned: their workspaces and copies differ")
      ->check(CLI::IsMember({"host", "cuda"}))
      ->capture_default_str();
  app.add_option("--channels", values.channels, "of the pair")
      ->check(CLI::IsMember(
          std::vector<int>(std::begin(compiled_channels), std::end(compiled_channels))))
      ->capture_default_str();
  app.add_option("--blocks", values.blocks, "of the model")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--model", model, "distogram, or none: modules alone")
      ->check(CLI::IsMember({"distogram", "none"}))
      ->capture_default_str();
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (CLI::CallForHelp const&) {
    result.help = app.help();
    return result;
  } catch (CLI::ParseError const& fault) {
    std::string what = fault.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw dtm::argument_error(what + " (--help lists the options)");
  }
  values.dtype = dtype == "fp64" ? element::fp64 : dtype == "bf16" ? element::bf16 : element::fp32;
  values.device = where == "host" ? device::host : device::cuda;
  values.model = model != "none";
  parse_mesh(mesh, values);
  return result;
}

}  // namespace example
