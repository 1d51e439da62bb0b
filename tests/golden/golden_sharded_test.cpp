// The sharded modules against the golden files of $DTM_GOLDEN_DIR, or of tests/data/golden, on the
// mesh of the ranks there are. Five ranks do not divide the tokens of the files that come with the
// library: they show that padding changes nothing.

#include "sharded.hpp"

#include "dtm/comm/agreement.hpp"
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

golden::summary run_all(std::string const& folder) {
  golden::sharded_context ctx(testing::world(), sizes(), 0, testing::test_options());
  golden::summary total;
  for (std::string const& path : golden::files_in(folder)) {
    auto const file = comm::agree(testing::world(), [&] { return golden::case_file::load(path); });
    std::string const module = file.module();
    bool const is_outgoing = module == "triangle_multiplication_outgoing";
    if (is_outgoing || module == "triangle_multiplication_incoming") {
      run_file(file, file.name(), total,
               [&] { return golden::run_triangle_sharded(ctx, file, is_outgoing, false); });
      if (sizes()[1] == sizes()[2])
        run_file(file, file.name() + " cannon", total,
                 [&] { return golden::run_triangle_sharded(ctx, file, is_outgoing, true); });
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
