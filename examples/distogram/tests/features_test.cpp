#include "support/catch.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <dtm/core/errors.hpp>

#include "../contact_map.hpp"
#include "../features.hpp"
#include "../initial_values.hpp"
#include "../png.hpp"
#include "structures.hpp"

using namespace example;
using dtm::testing::Approx;
using dtm::testing::contains;

namespace {

structure line(std::vector<double> const& places) {
  structure result;
  result.chains = {"A"};
  for (double const x : places) {
    token each;
    each.residue_class = 2;
    each.residue_index = std::int64_t(result.tokens.size());
    each.resolved = !std::isnan(x);
    each.position = {each.resolved ? x : 0, 0, 0};
    result.tokens.push_back(each);
  }
  return result;
}

std::uint32_t big_endian(unsigned char const* bytes) {
  return std::uint32_t(bytes[0]) << 24 | std::uint32_t(bytes[1]) << 16 |
         std::uint32_t(bytes[2]) << 8 | bytes[3];
}

std::uint32_t crc32(unsigned char const* bytes, std::size_t count) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = 0; i < count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

}  // namespace

TEST_CASE("bins count the boundaries that a distance exceeds") {
  CHECK(distance_bin(0) == 0);
  CHECK(distance_bin(2) == 0);  // strict
  CHECK(distance_bin(2.0001) == 1);
  CHECK(bin_boundary(62) == Approx(22));
  CHECK(distance_bin(21.999) == 62);
  CHECK(distance_bin(22.001) == 63);
  CHECK(distance_bin(INFINITY) == 63);
}

TEST_CASE("padding: mask zero, a chain of its own, nothing counts") {
  features const f = make_features(line({0, 3, 6, 9, 12}), 4);
  CHECK(f.tokens == 5);
  CHECK(f.padded == 8);
  CHECK(f.asym_id[7] == 1);
  CHECK(f.entity_id[7] == 1);
  auto const mask = pair_mask<float>(f, {4, 6}, {3, 6});
  CHECK(mask == std::vector<float>{1, 1, 0, 0, 0, 0});
  auto const one_hot = residue_one_hot<float>(f, {4, 6});
  CHECK(one_hot[2] == 1);
  for (std::size_t i = 33; i < 66; ++i) CHECK(one_hot[i] == 0);
  CHECK(distance_targets(f, {0, 1}, {0, 3}) == std::vector<std::uint8_t>{0, 4, 13});
  auto const target = distance_one_hot<double>(f, f.all(), f.all());
  double sum = 0;
  for (double const value : target) sum += value;
  CHECK(sum == 20);  // 5 tokens, off the diagonal
}

TEST_CASE("tiles are what they are of the whole") {
  features const f = make_features(line({0, 3, NAN, 9, 12, 30}), 2);
  auto const whole = distance_one_hot<float>(f, f.all(), f.all());
  auto const tile = distance_one_hot<float>(f, {3, 6}, {0, 3});
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t bin = 0; bin < 64; ++bin) {
        REQUIRE(tile[std::size_t((i * 3 + j) * 64 + bin)] ==
                whole[std::size_t(((i + 3) * 6 + j) * 64 + bin)]);
      }
    }
  }
}

TEST_CASE("fewer residues than the mesh needs are refused") {
  CHECK(token_multiple(2, 3) == 6);
  CHECK_THROWS_AS(make_features(line({0, 1}), 4), dtm::argument_error);
  CHECK_THROWS_WITH(make_features(line({0, 1}), 4),
                    contains("2 residues") && contains("smaller mesh"));
}

TEST_CASE("the best constant prediction is the entropy of the histogram") {
  CHECK(best_constant_loss(make_features(line({0, 3}), 1)) == Approx(0).margin(1e-12));
  // Distances 3, 3, 6 and nothing of the unresolved token or of the padding: bins 2/3 and 1/3.
  double const expected = -(2. / 3 * std::log(2. / 3) + 1. / 3 * std::log(1. / 3));
  CHECK(best_constant_loss(make_features(line({0, 3, NAN, 6}), 8 / 2)) ==
        Approx(expected).epsilon(1e-4));
  CHECK(best_constant_loss(make_features(line({NAN, NAN}), 1)) == 0);
}

TEST_CASE("initial values depend on seed, name and index alone and have Boltz's scales") {
  std::string const lecun = "layers.0.tri_mul_out.p_in.weight";
  CHECK(initial_value(1, lecun, 7, 32) == initial_value(1, lecun, 7, 32));
  CHECK(initial_value(1, lecun, 7, 32) != initial_value(2, lecun, 7, 32));
  CHECK(initial_value(1, lecun, 7, 32) !=
        initial_value(1, "layers.1.tri_mul_out.p_in.weight", 7, 32));
  double sum = 0, squares = 0, largest = 0, mean_uniform = 0, largest_uniform = 0;
  int const count = 20000;
  for (int i = 0; i < count; ++i) {
    double const x = initial_value(3, lecun, i, 25);
    sum += x;
    squares += x * x;
    largest = std::max(largest, std::abs(x));
    double const u = initial_value(3, "distogram_module.distogram.bias", i, 16);
    mean_uniform += u;
    largest_uniform = std::max(largest_uniform, std::abs(u));
  }
  CHECK(sum / count == Approx(0).margin(0.005));
  CHECK(std::sqrt(squares / count) == Approx(0.2).epsilon(0.02));
  CHECK(largest <= 2 * 0.2 / 0.87962566 + 1e-6);
  CHECK(mean_uniform / count == Approx(0).margin(0.005));
  CHECK(largest_uniform == Approx(0.25).epsilon(0.01));
  CHECK(initial_value(1, "layers.0.transition_z.fc3.weight", 0, 32) == 0);
  CHECK(initial_value(1, "layers.0.transition_z.norm.weight", 0, 32) == 1);
  CHECK(initial_value(1, "layers.0.transition_z.norm.bias", 0, 32) == 0);
  CHECK_THROWS_WITH(initial_value(1, "layers.0.unknown.weight", 0, 32),
                    contains("layers.0.unknown.weight"));
}

TEST_CASE("contacts") {
  CHECK(contact_bins() == 20);
  std::vector<float> logits(64, -100.f);
  logits[19] = 0;
  CHECK(contact_probability(logits.data()) == Approx(1));
  logits[19] = -100;
  logits[20] = 1e4f;
  CHECK(contact_probability(logits.data()) == Approx(0).margin(1e-12));
  // Tokens 0 and 7 touch; the model finds that pair more probable than any other.
  features const f = make_features(line({0, 30, 60, 90, 120, 150, 180, 4}), 1);
  std::vector<double> probability(64, 0.1);
  probability[7] = 0.9;
  CHECK(contact_precision(f, probability) == 1);
  probability[7] = 0;
  CHECK(contact_precision(f, probability) == 0);
}

TEST_CASE("the contact map is a valid PNG") {
  features const f = make_features(line({0, 5, 10, 15, 20}), 2);
  image const picture = contact_map(f, std::vector<double>(36, 0.5));
  CHECK(picture.width >= 2 * 5 * 4);
  testing::temporary_file const file("", "map.png");
  write_png(file.path(), picture);
  std::ifstream stream(file.path(), std::ios::binary);
  std::vector<char> const raw{std::istreambuf_iterator<char>(stream), {}};
  auto const* bytes = reinterpret_cast<unsigned char const*>(raw.data());
  REQUIRE(raw.size() > 45);
  CHECK(std::memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0);
  std::vector<std::string> chunks;
  for (std::size_t at = 8; at + 12 <= raw.size();) {
    std::size_t const length = big_endian(bytes + at);
    REQUIRE(at + 12 + length <= raw.size());
    chunks.emplace_back(raw.data() + at + 4, 4);
    CHECK(crc32(bytes + at + 4, length + 4) == big_endian(bytes + at + 8 + length));
    if (chunks.size() == 1) {
      CHECK(int(big_endian(bytes + at + 8)) == picture.width);
      CHECK(int(big_endian(bytes + at + 12)) == picture.height);
      CHECK(bytes[at + 16] == 8);  // bits
      CHECK(bytes[at + 17] == 2);  // red, green, blue
    }
    at += 12 + length;
  }
  CHECK(chunks.front() == "IHDR");
  CHECK(chunks.back() == "IEND");
  CHECK_THROWS_AS(write_png("/nonexistent/map.png", picture), dtm::file_error);
}
