// The vectors' exponential, sigmoid and SiLU over the full range, beside long double, in units in the last
// place; the bounds are the ones that host/tiles/vector.inc states.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "dtm/backend/host/tiles.hpp"
#include "sets.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

/// Distance in steps of T at the exact value; below the least normal number its step.
template <class T>
double steps(T got, long double exact) {
  using limits = std::numeric_limits<T>;
  long double const size = std::fabs(exact);
  if (size > (long double)(limits::max())) return std::isinf(got) ? 0 : 1e9;
  int exponent = 0;
  std::frexp(size < (long double)(limits::min()) ? (long double)(limits::min()) : size, &exponent);
  long double const step = std::ldexp(1.0L, exponent - limits::digits);
  return double(std::fabs((long double)(got)-exact) / step);
}

/// Every so many bit patterns of one sign and the other, and what lies around the ends.
template <class T>
std::vector<T> arguments() {
  std::vector<T> x;
  if constexpr (sizeof(T) == 4)
    for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 10007)
      for (std::uint32_t sign : {0u, 0x80000000u}) x.push_back(std::bit_cast<T>(bits | sign));
  else
    for (std::uint64_t bits = 0; bits < 0x7ff0000000000000u; bits += 0x00005f123456789u)
      for (std::uint64_t sign : {0ull, 0x8000000000000000ull})
        x.push_back(std::bit_cast<T>(bits | sign));
  for (double end : {-104.0, -103.9, -88.0, -87.3, 88.7, 89.0, -745.2, -746.0, 709.7, 710.0})
    for (double step : {-1e-3, 0.0, 1e-3}) x.push_back(T(end + step));
  for (double at = -760; at < 720; at += 1.0 / 64) x.push_back(T(at));
  return x;
}

template <class T>
void check_functions(char const* type) {
  auto const x = arguments<T>();
  std::vector<T> y(x.size());
  for (instruction_set set : testing::instruction_sets()) {
    double worst_sigmoid = 0, worst_silu = 0;
    std::vector<T> silu(x.size());
    tiles::with(set, [&](auto loops) {
      loops.sigmoid_of(std::int64_t(x.size()), x.data(), y.data());
      loops.silu_of(std::int64_t(x.size()), x.data(), silu.data());
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      long double const exact = 1 / (1 + std::exp(-(long double)(x[i])));
      if (y[i] == 0 && exact <= 2 * (long double)(std::numeric_limits<T>::min())) {
        CHECK(silu[i] == 0);
        continue;
      }
      worst_sigmoid = std::max(worst_sigmoid, steps(y[i], exact));
      worst_silu = std::max(worst_silu, steps(silu[i], x[i] * exact));
    }
    std::printf("%s %-8s sigmoid %.2f of 4, silu %.2f of 5 units in the last place\n", type,
                name_of(set), worst_sigmoid, worst_silu);
    CHECK(worst_sigmoid <= 4);
    CHECK(worst_silu <= 5);

    // without fused products the argument is rounded as well
    double const per_x = set == instruction_set::portable ? 1.25 : 0.25;
    double worst_negative = 0;
    tiles::with(set, [&](auto loops) {
      loops.exp_of_negative_of(std::int64_t(x.size()), x.data(), y.data());
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] > 0) continue;
      long double const exact = std::exp((long double)(x[i]));
      if (y[i] == 0 && exact <= 2 * (long double)(std::numeric_limits<T>::min())) continue;
      worst_negative = std::max(worst_negative, steps(y[i], exact) / (1 - per_x * double(x[i])));
    }
    std::printf("%s %-8s exp of negative numbers: %.2f of 1 + %g |x|\n", type, name_of(set),
                worst_negative, per_x);
    CHECK(worst_negative <= 1);

    T const infinity = std::numeric_limits<T>::infinity();
    std::vector<T> const ends{infinity, -infinity, std::numeric_limits<T>::quiet_NaN()};
    std::vector<T> at_ends(3);
    tiles::with(set, [&](auto loops) { loops.exp_of_negative_of(3, ends.data(), at_ends.data()); });
    CHECK(at_ends[1] == 0);
    CHECK(std::isnan(at_ends[2]));
    tiles::with(set, [&](auto loops) { loops.sigmoid_of(3, ends.data(), at_ends.data()); });
    CHECK(at_ends[0] == 1);
    CHECK(at_ends[1] == 0);
    CHECK(std::isnan(at_ends[2]));
    tiles::with(set, [&](auto loops) { loops.silu_of(3, ends.data(), at_ends.data()); });
    CHECK(at_ends[0] == infinity);
    CHECK(std::isnan(at_ends[1]));
    CHECK(std::isnan(at_ends[2]));
  }
}

}  // namespace

TEST_CASE("exponential and sigmoid: fp32") {
  check_functions<float>("fp32");
}
TEST_CASE("exponential and sigmoid: fp64") {
  check_functions<double>("fp64");
}
