// Products beside a plain sum. Operands are small whole numbers, so every sum is exact in any order
// and every bit must agree; a second test has real numbers and asks that no bit depends on the tile
// or remainder that an element lies in.

#include <cstdint>
#include <random>
#include <vector>

#include "dtm/backend/host/products.hpp"
#include "plain_memory.hpp"
#include "sets.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

template <class T>
std::vector<T> whole_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(std::size_t(count), T(0.0f));
  for (auto& value : values) value = T(float(int(random() % 7) - 3));
  return values;
}

template <class T, class Result>
void compare(local::gemm_shape const& s) {
  auto const left = whole_numbers<T>(s.batch * s.m * s.k, 1);
  auto const right = whole_numbers<T>(s.batch * s.k * s.n, 2);
  auto const before = whole_numbers<Result>(s.batch * s.m * s.n, 3);
  auto expected = before;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        std::int64_t const at = (b * s.m + i) * s.n + j;
        float sum = s.accumulate ? float(before[std::size_t(at)]) : 0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          std::int64_t const in_left = s.left_transposed ? k * s.m + i : i * s.k + k,
                             in_right = s.right_transposed ? j * s.k + k : k * s.n + j;
          sum += float(left[std::size_t(b * s.m * s.k + in_left)]) *
                 float(right[std::size_t(b * s.k * s.n + in_right)]);
        }
        expected[std::size_t(at)] = Result(sum);
      }
  for (instruction_set set : testing::instruction_sets()) {
    auto result = before;
    local::detail::host_product(set, s, left.data(), right.data(), result.data(),
                                testing::plain_memory());
    INFO(name_of(set) << " batch " << s.batch << " m " << s.m << " n " << s.n << " k " << s.k
                      << " transposed " << s.left_transposed << s.right_transposed << " accumulate "
                      << s.accumulate);
    CHECK((result == expected));
  }
}

template <class T, class Result>
void compare_all() {
  for (std::int64_t m : {1, 5, 12, 13, 33, 100})
    for (std::int64_t n : {1, 7, 16, 31, 33, 97, 300})
      for (std::int64_t k : {0, 1, 3, 16, 129, 300})
        for (int flags = 0; flags < 8; ++flags)
          compare<T, Result>(
              {1 + m % 2, m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
}

}  // namespace

TEST_CASE("products of whole numbers are exact: fp32") {
  compare_all<float, float>();
}
TEST_CASE("products of whole numbers are exact: fp64") {
  compare_all<double, double>();
}
TEST_CASE("products of whole numbers are exact: bf16 summed in fp32") {
  compare_all<bf16, float>();
}
TEST_CASE("products of bf16 are rounded once, also where k has several blocks") {
  compare_all<bf16, bf16>();
}

TEST_CASE("no bit depends on the rows and columns that are computed with an element") {
  std::int64_t const m = 101, n = 97, k = 301;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> left(m * k), right(k * n);
  for (auto& value : left) value = normal(random);
  for (auto& value : right) value = normal(random);
  for (instruction_set set : testing::instruction_sets()) {
    std::vector<float> whole(m * n), row(n), one(1);
    local::detail::host_product<float, float>(set, {1, m, n, k}, left.data(), right.data(),
                                              whole.data(), testing::plain_memory());
    std::int64_t differing = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      local::detail::host_product<float, float>(set, {1, 1, n, k}, left.data() + i * k,
                                                right.data(), row.data(), testing::plain_memory());
      for (std::int64_t j = 0; j < n; ++j)
        differing += row[std::size_t(j)] != whole[std::size_t(i * n + j)];
      std::vector<float> column(k);
      for (std::int64_t l = 0; l < k; ++l)
        column[std::size_t(l)] = right[std::size_t(l * n + i % n)];
      local::detail::host_product<float, float>(set, {1, 1, 1, k}, left.data() + i * k,
                                                column.data(), one.data(), testing::plain_memory());
      differing += one[0] != whole[std::size_t(i * n + i % n)];
    }
    INFO(name_of(set));
    CHECK(differing == 0);
  }
}
