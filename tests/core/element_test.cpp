// bf16 as storage (law L11): rounding compared with a computation in double.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "dtm/core/element.hpp"
#include "support/catch.hpp"

using dtm::bf16;

namespace {

float from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// Nearest bf16 of a finite float, ties to even, by arithmetic: a bf16 has 8 significant binary
// digits, and none finer than 2^-133.
double rounded(float value) {
  double const x = value;
  if (x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| in [2^(exponent-1), 2^exponent)
  double const unit = std::ldexp(1.0, std::max(exponent - 8, -133));
  double const units = std::nearbyint(x / unit);  // both exact; rounds ties to even
  double const result = units * unit;
  double const largest = std::ldexp(255.0, 120);
  if (std::fabs(result) > largest) return std::copysign(std::numeric_limits<double>::infinity(), x);
  return result;
}

bool same(double a, double b) {
  return a == b && std::signbit(a) == std::signbit(b);
}

}  // namespace

TEST_CASE("bf16 rounds to nearest even") {
  CHECK(float(bf16(1.0f)) == 1.0f);
  CHECK(float(bf16(-2.5f)) == -2.5f);
  CHECK(bf16(from_bits(0x3f808000)).bits == 0x3f80);  // a tie, down to even
  CHECK(bf16(from_bits(0x3f818000)).bits == 0x3f82);  // a tie, up to even
  CHECK(bf16(from_bits(0x3f808001)).bits == 0x3f81);  // just above a tie
  CHECK(bf16(from_bits(0x3f807fff)).bits == 0x3f80);  // just below
  CHECK(bf16(from_bits(0x3fffffff)).bits == 0x4000);  // the carry reaches the exponent
}

TEST_CASE("bf16 agrees with double arithmetic on every exponent") {
  std::mt19937 draw(1);
  int wrong = 0;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    if ((high & 0x7f80u) == 0x7f80u) continue;  // infinities and NaN
    for (std::uint32_t const low :
         {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, std::uint32_t(draw() & 0xffffu)}) {
      float const value = from_bits(high << 16 | low);
      double const got = double(bf16(value));
      if (!same(got, rounded(value))) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every bf16 survives the way through float") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    bf16 stored;
    stored.bits = std::uint16_t(bits);
    bf16 const back(static_cast<float>(stored));
    bool const nan = std::isnan(float(stored));
    if (nan ? !std::isnan(float(back)) : !(back == stored)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16 keeps what is not a number, infinite, tiny or zero") {
  float const infinite = std::numeric_limits<float>::infinity();
  CHECK(float(bf16(infinite)) == infinite);
  CHECK(float(bf16(-infinite)) == -infinite);
  CHECK(float(bf16(std::numeric_limits<float>::max())) == infinite);
  CHECK(std::isnan(float(bf16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(float(bf16(from_bits(0x7f800001)))));  // payload only in the dropped half
  CHECK(std::isnan(float(bf16(from_bits(0xffffffff)))));
  CHECK(std::signbit(float(bf16(-0.0f))));
  CHECK(bf16(from_bits(0x00010000)).bits == 0x0001);  // the smallest denormal bf16
  CHECK(bf16(from_bits(0x00008000)).bits == 0x0000);  // half of it: a tie, to even
  CHECK(bf16(from_bits(0x00008001)).bits == 0x0001);
  CHECK(bf16(from_bits(0x007fffff)).bits == 0x0080);  // a denormal that becomes normal
}

TEST_CASE("accumulation is fp32 or wider") {
  STATIC_REQUIRE(std::is_same_v<dtm::accumulate_t<bf16>, float>);
  STATIC_REQUIRE(std::is_same_v<dtm::accumulate_t<float>, float>);
  STATIC_REQUIRE(std::is_same_v<dtm::accumulate_t<double>, double>);
  STATIC_REQUIRE(sizeof(bf16) == 2);
  STATIC_REQUIRE(std::is_trivially_copyable_v<bf16>);
  STATIC_REQUIRE(!std::is_convertible_v<float, bf16>);
  STATIC_REQUIRE(!std::is_convertible_v<bf16, float>);
}
