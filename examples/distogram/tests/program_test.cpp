// Command line, progress, report and the comparison behind --verify.

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <dtm/core/errors.hpp>

#include "../options.hpp"
#include "../progress.hpp"
#include "../report.hpp"
#include "../verify.hpp"
#include "structures.hpp"

using namespace example;
using dtm::testing::contains;

namespace {

options parse(std::vector<std::string> const& arguments, int ranks = 4) {
  return parse_command_line(arguments, ranks, "default.cif").values;
}

features few_tokens(std::int64_t multiple) {
  structure result;
  result.chains = {"A"};
  for (int i = 0; i < 5; ++i) {
    token each;
    each.residue_class = 2 + i;
    each.residue_index = i;
    each.resolved = i != 3;
    each.position = {3.5 * i, 1. * (i % 2), 0};
    result.tokens.push_back(each);
  }
  return make_features(result, multiple);
}

training_settings small() {
  training_settings result;
  result.blocks = 2;
  result.channels = 4;
  result.single_channels = 3;
  return result;
}

}  // namespace

TEST_CASE("options: defaults and values") {
  options const plain = parse({});
  CHECK(plain.file == "default.cif");
  CHECK(plain.cp0 == 2);
  CHECK(plain.cp1 == 2);
  CHECK(parse({}, 6).cp0 == 2);
  CHECK(parse({}, 6).cp1 == 3);
  CHECK(parse({}, 3).cp0 == 1);
  options const given =
      parse({"--file",        "a.cif", "--chain",         "B",   "--mesh",  "1x4",  "--steps", "7",
             "--blocks",      "2",     "--channels",      "16",  "--dtype", "fp64", "--seed",  "9",
             "--check-level", "2",     "--learning-rate", "0.5", "--out",   "o",    "--verify"});
  CHECK(given.chain == "B");
  CHECK(given.cp0 == 1);
  CHECK(given.cp1 == 4);
  CHECK(given.steps == 7);
  CHECK(given.channels == 16);
  CHECK(given.dtype == element::fp64);
  CHECK(given.check_level == 2);
  CHECK(given.verify);
  CHECK(parse({"--schedule", "cannon"}).triangle == schedule::cannon);
  CHECK(plain.backend == backend::host);
  options const emulated = parse({"--backend", "emulated", "--blocks", "2"});
  CHECK(emulated.backend == backend::emulated);
  CHECK(emulated.steps == 3);
  CHECK(emulated.blocks == 2);
  CHECK(emulated.channels == 16);
  CHECK_THAT(parse_command_line({"--help"}, 4, "f").help.value(), contains("--learning-rate"));
}

TEST_CASE("options: every mistake is one sentence") {
  CHECK_THROWS_AS(parse({"--nonsense"}), dtm::argument_error);
  CHECK_THROWS_WITH(parse({"--nonsense"}), contains("--nonsense"));
  CHECK_THROWS_WITH(parse({"stray"}), contains("stray"));
  CHECK_THROWS_WITH(parse({"--steps", "0"}), contains("--steps"));
  CHECK_THROWS_WITH(parse({"--steps", "many"}), contains("--steps"));
  CHECK_THROWS_WITH(parse({"--seed", "-1"}), contains("--seed"));
  CHECK_THROWS_WITH(parse({"--check-level", "4"}), contains("--check-level"));
  CHECK_THROWS_WITH(parse({"--channels", "17"}),
                    contains("17 was not compiled; choose one of 16, 32, 64"));
  CHECK_THROWS_WITH(parse({"--dtype", "fp8"}), contains("--dtype"));
  CHECK_THROWS_WITH(parse({"--schedule", "magic"}), contains("--schedule"));
  CHECK_THROWS_WITH(parse({"--backend", "tpu"}), contains("--backend"));
  CHECK_THROWS_WITH(parse({"--backend", "cuda", "--dtype", "fp64"}), contains("fp32 and bf16"));
  CHECK_THROWS_WITH(parse({"--learning-rate", "-1"}), contains("--learning-rate"));
  CHECK_THROWS_WITH(parse({"--mesh", "4"}), contains("'4' is not a mesh"));
  CHECK_THROWS_WITH(parse({"--mesh", "0x4"}), contains("is not a mesh"));
  CHECK_THROWS_AS(parse({"--mesh", "2x3"}), dtm::mesh_error);
  CHECK_THROWS_WITH(parse({"--mesh", "2x3"}), contains("needs 6 ranks, mpiexec started 4"));
  CHECK_THROWS_WITH(parse({"--schedule", "cannon"}, 6), contains("square mesh"));
  try {
    parse({"--steps", "0"});
  } catch (dtm::argument_error const& fault) {
    CHECK(std::string(fault.what()).find('\n') == std::string::npos);
  }
}

TEST_CASE("progress: lines in a pipe, one rewritten line on a terminal") {
  std::ostringstream plain, terminal;
  {
    progress lines(plain, false, 100, 3.8), line(terminal, true, 100, 3.8);
    for (int step = 1; step <= 100; ++step) {
      lines.update(step, 4. / step, 0.1 * step);
      line.update(step, 4. / step, 0.1 * step);
    }
  }
  std::string const text = plain.str(), live = terminal.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == 21);
  CHECK(text.find('\r') == text.npos);
  CHECK(std::count(live.begin(), live.end(), '\r') == 100);
  CHECK(std::count(live.begin(), live.end(), '\n') == 1);
  std::ostringstream broken_off;
  { progress(broken_off, true, 10, 1.).update(1, 1, 1); }
  CHECK(broken_off.str().back() == '\n');
}

TEST_CASE("report and losses") {
  run_report report;
  report.structure = "TEST, chain X";
  report.steps = {{1, 4, 0.5}, {2, 3, 0.5}};
  report.final_loss = 2;
  report.best_constant = 3.8;
  report.ranks = {{0, 1000000, 1100000, 2000000, 2000000, 5000000}};
  report.contracts = "the table";
  std::string const text = to_text(report);
  CHECK_THAT(text, contains("4.0000 at the start, 2.0000 after the last step, 0.5 of the start"));
  CHECK_THAT(text, contains("3.8000 by the best constant"));
  CHECK_THAT(text, contains("0.500 s a step"));
  CHECK_THAT(text, contains("the table"));
  testing::temporary_file const file("", "loss.csv");
  write_losses(file.path(), report.steps);
  std::ifstream stream(file.path());
  std::string first, second;
  std::getline(stream, first);
  std::getline(stream, second);
  CHECK(first == "step,loss,seconds");
  CHECK(second == "1,4,0.5000");
  CHECK_THROWS_AS(make_folder(file.path()), dtm::file_error);
  CHECK(peak_resident_bytes() > 0);
}

TEST_CASE("the serial run learns and does not depend on padding") {
  trajectory const exact = serial_trajectory(few_tokens(1), small());
  CHECK(exact.losses.back() < exact.losses.front());
  trajectory const padded = serial_trajectory(few_tokens(4), small());
  difference const found = compare(padded, exact);
  INFO(found.worst << " " << found.parameters << " loss " << found.loss);
  CHECK(found.within_tolerance());
}

TEST_CASE("compare sees a difference, a hole and NaN") {
  trajectory const reference{{2, 1}, {{"a", {1, -4}}, {"b", {0}}}};
  CHECK(compare(reference, reference).within_tolerance());
  auto changed = reference;
  changed.parameters["a"][0] = 1 + 4e-9;
  CHECK(compare(changed, reference).worst == "a");
  CHECK_FALSE(compare(changed, reference).within_tolerance());
  changed = reference;
  changed.losses[1] = NAN;
  CHECK_FALSE(compare(changed, reference).within_tolerance());
  changed = reference;
  changed.losses.pop_back();
  CHECK_FALSE(compare(changed, reference).within_tolerance());
  changed = reference;
  changed.parameters.erase("b");
  CHECK_FALSE(compare(changed, reference).within_tolerance());
  changed = reference;
  changed.parameters["b"][0] = 1e-300;
  CHECK_FALSE(compare(changed, reference).within_tolerance());
}
