// The sharded modules against the golden files of $DTM_GOLDEN_DIR, or of tests/data/golden, on the
// mesh of the ranks there are. Five ranks do not divide the tokens of the files that come with the
// library: they show that padding changes nothing.

#include "sharded.hpp"

#include "dtm/comm/agreement.hpp"
#include "dtm/testing/report.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace {

using namespace dtm;

std::vector<int> sizes() {
  for (int rows = 3; rows > 1; --rows)
    if (testing::ranks() % rows == 0 && testing::ranks() / rows >= rows)
      return {1, rows, testing::ranks() / rows};
  return {1, 1, testing::ranks()};
}

void print(std::string const& line) {
  if (testing::rank() > 0) return;
  std::puts(line.c_str());
  std::fflush(stdout);
}

/// One file by one runner; a line on rank 0.
void run_file(golden::case_file const& file, std::string const& name, golden::summary& total,
              std::function<golden::outcome()> const& run) {
  try {
    auto const c = golden::compare(file, run());
    ++(c.passed() ? total.passed : total.failed);
    print(golden::line(name, c));
  } catch (golden::not_here const& why) {
    ++total.skipped;
    print(name + ": skipped, " + why.reason);
  }
}

/// The runner of a module that has two schedules, or an empty function.
using scheduled_runner = std::function<golden::outcome(golden::sharded_context&,
                                                       golden::case_file const&, bool by_ring)>;
scheduled_runner find_scheduled(std::string const& module) {
  using namespace golden;
  auto const with_first = [](auto run, bool first) {
    return [run, first](sharded_context& ctx, case_file const& file, bool by_ring) {
      return run(ctx, file, first, by_ring);
    };
  };
  if (module == "triangle_multiplication_outgoing") return with_first(run_triangle_sharded, true);
  if (module == "triangle_multiplication_incoming") return with_first(run_triangle_sharded, false);
  if (module == "triangle_attention_starting") return with_first(run_attention_sharded, true);
  if (module == "triangle_attention_ending") return with_first(run_attention_sharded, false);
  if (module == "pairformer_noseq_layer") return run_noseq_layer_sharded;
  return {};
}

golden::summary run_all(std::string const& folder) {
  golden::sharded_context ctx(testing::world(), sizes(), 0, testing::test_options());
  golden::summary total;
  for (std::string const& path : golden::files_in(folder)) {
    auto const file = comm::agree(testing::world(), [&] { return golden::case_file::load(path); });
    std::string const module = file.module();
    if (auto const scheduled = find_scheduled(module)) {
      run_file(file, file.name(), total, [&] { return scheduled(ctx, file, false); });
      if (sizes()[1] == sizes()[2])
        run_file(file, file.name() + " by ring", total, [&] { return scheduled(ctx, file, true); });
    } else if (auto const run = golden::find_sharded(module)) {
      run_file(file, file.name(), total, [&] { return run(ctx, file); });
    } else {
      ++total.skipped;
      print(file.name() + ": skipped, no module " + module + " here");
    }
  }
  print("golden files in " + folder + " on cp0=" + std::to_string(sizes()[1]) +
        " cp1=" + std::to_string(sizes()[2]) + ": " + std::to_string(total.passed) + " passed, " +
        std::to_string(total.failed) + " failed, " + std::to_string(total.skipped) + " skipped");
  return total;
}

}  // namespace

TEST_CASE("sharded modules agree with every golden file") {
  auto const total = run_all(golden::folder_or(DTM_GOLDEN_DEFAULT_DIR));
  CHECK(total.failed == 0);
  CHECK(total.passed + total.skipped > 0);
}

TEST_CASE("a wrong parameter is seen") {
  golden::sharded_context ctx(testing::world(), sizes(), 0, testing::test_options());
  auto const load = [](char const* name) {
    return golden::case_file::load(std::string(DTM_GOLDEN_DEFAULT_DIR) + "/" + name +
                                   ".safetensors");
  };
  auto const outgoing_file = load("triangle_multiplication_outgoing.base_b2_n12");
  CHECK(
      golden::compare(outgoing_file, golden::run_triangle_sharded(ctx, outgoing_file, true, false))
          .passed());
  CHECK_FALSE(
      golden::compare(outgoing_file, golden::run_triangle_sharded(ctx, outgoing_file, false, false))
          .passed());
}

TEST_CASE("the pair track of a layer takes the draws of dropout that it is given") {
  golden::sharded_context ctx(testing::world(), sizes(), 0, testing::test_options());
  auto const file = golden::case_file::load(std::string(DTM_GOLDEN_DEFAULT_DIR) +
                                            "/pairformer_layer_dropout.base_b2_n12.safetensors");
  for (bool by_ring : {false, true}) {
    if (by_ring && sizes()[1] != sizes()[2]) continue;
    try {
      auto const made = golden::run_pair_dropout_sharded(ctx, file, by_ring);
      double const error = testing::scaled_error(made.at("output.z"), file.real("output.z")),
                   tolerance = 1e-12;
      print(file.name() + (by_ring ? " by ring" : "") + ": output.z " + golden::number_text(error) +
            " (1.0e-12)");
      CHECK(error <= tolerance);
    } catch (golden::not_here const& why) {
      print(file.name() + ": skipped, " + why.reason);
      CHECK(12 % testing::ranks() != 0);
    }
  }
}
