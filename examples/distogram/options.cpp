#include "options.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <CLI/CLI.hpp>

#include <dtm/core/errors.hpp>

namespace example {
namespace {

std::string list_of_channels() {
  std::string result;
  for (int const channels : compiled_channels) {
    result += (result.empty() ? "" : ", ") + std::to_string(channels);
  }
  return result;
}

std::pair<int, int> most_nearly_square(int ranks) {
  int rows = int(std::sqrt(double(ranks)));
  while (ranks % rows != 0) --rows;
  return {rows, ranks / rows};
}

std::pair<int, int> parse_mesh(std::string const& text) {
  std::size_t const cross = text.find('x');
  auto const number = [&](std::string const& part) {
    bool const digits =
        !part.empty() && part.size() <= 6 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits ? std::stoi(part) : 0;
  };
  int const rows = cross == text.npos ? 0 : number(text.substr(0, cross));
  int const columns = cross == text.npos ? 0 : number(text.substr(cross + 1));
  if (rows < 1 || columns < 1) {
    throw dtm::argument_error("--mesh '" + text +
                              "' is not a mesh; write rows x columns, such as 2x2");
  }
  return {rows, columns};
}

void check(options const& values) {
  if (std::find(std::begin(compiled_channels), std::end(compiled_channels), values.channels) ==
      std::end(compiled_channels)) {
    throw dtm::argument_error("--channels " + std::to_string(values.channels) +
                              " was not compiled; choose one of " + list_of_channels());
  }
  if (values.backend == backend::emulated && values.dtype != element::fp32)
    throw dtm::argument_error("--backend emulated is compiled for --dtype fp32");
  if (values.backend == backend::cuda && values.dtype == element::fp64)
    throw dtm::argument_error("--backend cuda is compiled for --dtype fp32 and bf16");
  if (values.verify && values.backend != backend::host)
    throw dtm::argument_error("--verify compares the host backend, in fp64");
#ifndef DTM_EXAMPLE_CUDA
  if (values.backend == backend::cuda)
    throw dtm::argument_error(
        "--backend cuda was not compiled; configure with -DDTM_WITH_CUDA=ON where nvcc is");
#endif
  if (!(values.learning_rate > 0) || !std::isfinite(values.learning_rate)) {
    throw dtm::argument_error("--learning-rate must be a positive number");
  }
  if (values.triangle == schedule::cannon && values.cp0 != values.cp1) {
    throw dtm::mesh_error("--schedule cannon needs a square mesh, not " +
                          std::to_string(values.cp0) + "x" + std::to_string(values.cp1) +
                          "; all_to_all takes any");
  }
}

}  // namespace

char const* to_string(element value) {
  return value == element::fp32 ? "fp32" : value == element::fp64 ? "fp64" : "bf16";
}

char const* to_string(backend value) {
  return value == backend::host ? "host" : value == backend::cuda ? "cuda" : "emulated";
}

char const* to_string(schedule value) {
  return value == schedule::all_to_all ? "all_to_all" : "cannon";
}

command_line parse_command_line(std::vector<std::string> const& arguments, int ranks,
                                std::string const& default_file) {
  command_line result;
  options& values = result.values;
  values.file = default_file;
  std::string mesh, dtype = to_string(values.dtype), triangle = to_string(values.triangle),
                    device = to_string(values.backend);
  CLI::App app("Trains a distogram model on one protein, sharded over all ranks of mpiexec.",
               "distogram");
  app.set_help_flag("-h,--help", "this text");
  app.add_option("--file", values.file, "mmCIF file")->capture_default_str();
  app.add_option("--chain", values.chain, "take only this chain (default: every polymer chain)");
  app.add_option("--mesh", mesh, "cp0 x cp1, such as 2x3 (default: most nearly square)");
  app.add_option("--steps", values.steps, "steps of Adam")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--blocks", values.blocks, "blocks of the model")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--channels", values.channels, "channels of the pair: " + list_of_channels())
      ->capture_default_str();
  app.add_option("--dtype", dtype, "of values and messages; bf16 is storage")
      ->check(CLI::IsMember({"fp32", "fp64", "bf16"}))
      ->capture_default_str();
  app.add_option("--backend", device,
                 "host, cuda, or emulated: the device's kernels on the CPU, with 3 steps, 1 block "
                 "and 16 channels unless given")
      ->check(CLI::IsMember({"host", "emulated", "cuda"}))
      ->capture_default_str();
  app.add_option("--seed", values.seed, "of the initial parameters")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--check-level", values.check_level, "0 to 3 (default: DTM_CHECK_LEVEL or 1)")
      ->check(CLI::Range(0, 3));
  app.add_option("--schedule", triangle, "of the triangle multiplication")
      ->check(CLI::IsMember({"all_to_all", "cannon"}))
      ->capture_default_str();
  app.add_option("--learning-rate", values.learning_rate, "of Adam")->capture_default_str();
  app.add_option("--out", values.folder, "folder for what the run writes")->capture_default_str();
  app.add_flag("--verify", values.verify,
               "compare ten steps in fp64 with the serial program, train nothing");
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
  values.backend = device == "cuda"       ? backend::cuda
                   : device == "emulated" ? backend::emulated
                                          : backend::host;
  if (values.backend == backend::emulated) {  // tens of times slower than the host
    if (app.count("--steps") == 0) values.steps = 3;
    if (app.count("--blocks") == 0) values.blocks = 1;
    if (app.count("--channels") == 0) values.channels = 16;
  }
  values.triangle = triangle == "cannon" ? schedule::cannon : schedule::all_to_all;
  auto const [rows, columns] = mesh.empty() ? most_nearly_square(ranks) : parse_mesh(mesh);
  values.cp0 = rows;
  values.cp1 = columns;
  if (std::int64_t(rows) * columns != ranks) {
    throw dtm::mesh_error("--mesh " + mesh + " needs " +
                          std::to_string(std::int64_t(rows) * columns) +
                          " ranks, mpiexec started " + std::to_string(ranks));
  }
  check(values);
  return result;
}

}  // namespace example
