// How the harness measures, and what it says of collectives.

#include "dtm/testing/report.hpp"

#include <cmath>

#include "dtm/testing/collectives.hpp"
#include "dtm/testing/draw.hpp"
#include "support/catch.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using whole = serial::array<double>;
using grid = mesh<dp, cp0, cp1>;

comm::ledger::entry ran(char const* operation, char const* axes, char const* tensor) {
  return {operation, axes, tensor, 1, 8, 1, 0, "", 0};
}

using listed = collectives<on_tensor<arg::a, all_to_all<move<cp0, 1>, move<cp1, 1>>>,
                           on_tensor<arg::b, ring_shift<cp1>>, on_tensor<arg::x, all_slice<cp0, 1>>,
                           on_tensor<arg::o, all_reduce<cp1, cp0>>>;

/// Rounding errors of about 1e-8 around a reference of size one.
whole near(whole const& reference, std::uint64_t seed, double size) {
  whole result = reference;
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values[i] += size * uniform(seed, i) * uniform(seed + 1, i);
  return result;
}

}  // namespace

TEST_CASE("scaled errors") {
  whole const reference({3}, {1, -4, 2});
  CHECK(scaled_error(reference, reference) == 0);
  CHECK(scaled_error(whole({3}, {1, -4, 2.5}), reference) == Approx(0.125));
  CHECK(std::isinf(scaled_error(whole({3}, {1, -4, std::nan("")}), reference)));
  CHECK(std::isinf(scaled_error(whole({1, 3}, {1, -4, 2}), reference)));
  // where the reference is rounding noise the error is absolute
  CHECK(scaled_error(whole({1}, {3e-16}), whole({1}, {1e-17})) == Approx(2.9e-16));
}

TEST_CASE("quantiles: as good passes, a shift of a half does not") {
  whole reference({2000});
  for (std::size_t i = 0; i < 2000; ++i) reference.values[i] = uniform(1, i);
  auto const compare = [&](whole const& sharded, whole const& serial_fp32) {
    error_sample sample;
    sample.add(sharded, serial_fp32, reference);
    return compare_quantiles("x", sample);
  };
  CHECK_FALSE(compare(near(reference, 2, 1e-6), near(reference, 4, 1e-6)).upward);
  CHECK_FALSE(compare(near(reference, 2, 1e-7), near(reference, 4, 1e-6)).upward);
  CHECK(compare(near(reference, 2, 1.5e-6), near(reference, 4, 1e-6)).upward);
  auto one_bad_part = near(reference, 2, 1e-6);
  for (std::size_t i = 0; i < 200; ++i)
    one_bad_part.values[i * 7] += 4e-6;  // a tenth of the elements
  CHECK(compare(one_bad_part, near(reference, 4, 1e-6)).upward);
  auto not_a_number = reference;
  for (double& value : not_a_number.values) value = std::nan("");
  CHECK(compare(not_a_number, near(reference, 4, 1e-6)).upward);
}

TEST_CASE("a contract as the ledger spells it") {
  auto const expected = expected_collectives<grid, listed>();
  REQUIRE(expected.size() == 3);  // a slice leaves no entry
  CHECK(expected[0].operation + expected[0].axes + expected[0].tensor == "all_to_allcp0*cp1a");
  CHECK(expected[1].repeats);
  CHECK(expected[2].axes == "cp0*cp1");  // in mesh order, however the contract writes it
}

TEST_CASE(
    "collectives: what ran and is not listed, what is listed and did not run, another order") {
  auto const expected = expected_collectives<grid, listed>();
  auto const a = ran("all_to_all", "cp0*cp1", "a"), b = ran("ring_shift", "cp1", "b"),
             o = ran("all_reduce", "cp0*cp1", "o");
  CHECK(compare_collectives(expected, {a, b, b, o, b}).empty());
  auto const first = [&](std::vector<comm::ledger::entry> const& entries) {
    auto const faults = compare_collectives(expected, entries);
    return faults.empty() ? std::string("none") : faults.front();
  };
  CHECK_THAT(first({b, o}),
             contains("all_to_all of a on cp0*cp1 ran 0 times, the contract lists it 1 times"));
  CHECK_THAT(first({a, a, b, o}), contains("ran 2 times"));
  CHECK_THAT(first({a, o}), contains("lists ring_shift of b on cp1, which did not run"));
  CHECK_THAT(first({a, b, o, ran("ring_shift", "cp0", "b")}),
             contains("ring_shift of b on cp0 ran 1 times"));
  CHECK_THAT(first({o, b, a}), contains("in another order"));
  CHECK_THAT(first({a, b, ran("all_reduce", "cp1", "o")}),
             contains("all_reduce of o on cp0*cp1 ran 0 times"));
}
