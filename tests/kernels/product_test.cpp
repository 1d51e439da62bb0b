// Matrix products: tiles in shared memory, and on the matrix units.

#include "contexts.hpp"

namespace dtm::kernel_test {
namespace {

// The result in Result<Element>: Element itself, or its accumulation type.
template <class T, bool Wide>
void compare_product(local::gemm_shape const& s, std::int64_t skew = 0) {
  std::int64_t const left_count = s.batch * s.m * s.k, right_count = s.batch * s.k * s.n,
                     count = s.batch * s.m * s.n;
  auto const l = numbers<T>(left_count, 1), r = numbers<T>(right_count, 2),
             before = numbers<bf16>(count, 3);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using Result = std::conditional_t<Wide, accumulate_t<Element>, Element>;
    array<Element> left(ctx, l, skew), right(ctx, r, skew);
    array<Result> result(ctx, before);
    local::gemm(ctx, s, left.data(), right.data(), result.data());
    std::vector<double> results;
    result.add_to(results);
    return results;
  };
  // k products of numbers below 1, and what was there
  std::string const what = size_text("product", {s.batch, s.m, s.n, s.k, s.left_transposed,
                                                 s.right_transposed, s.accumulate, skew});
  compare<T>(what,
             {{Wide ? "wide" : "same", count, double(s.k) + 2, double(s.k) + 1, Wide ? 0. : 1.}},
             run);
}

template <class T>
void compare_products(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  for (int flags = 0; flags < 8; ++flags) {
    local::gemm_shape const s{batch, m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
    compare_product<T, false>(s);
    if (!std::is_same_v<T, accumulate_t<T>> && flags >= 4) compare_product<T, true>(s);
  }
}

TEMPLATE_TEST_CASE("products", "", float, double, bf16) {
  compare_products<TestType>(1, 1, 1, 1);
  compare_products<TestType>(2, 31, 33, 5);
  compare_products<TestType>(1, 65, 24, 33);
  compare_products<TestType>(3, 24, 128, 40);  // rows that are aligned
  compare_products<TestType>(1, 8, 64, 0);
  local::gemm_shape const aligned{1, 64, 64, 64};
  compare_product<TestType, false>(aligned, 1);
}

TEMPLATE_TEST_CASE("a long sum is cut, and its parts are added", "", float, bf16) {
  local::gemm_shape s{1, 24, 33, 1100};
  s.left_transposed = true;
  for (bool const accumulate : {false, true}) {
    s.accumulate = accumulate;
    compare_product<TestType, true>(s);
    compare_product<TestType, false>(s);
  }
}

TEST_CASE("faults of products show") {
  auto const multiply = []<class T>(type_is<T>) {
    return [](auto& ctx, std::vector<double>& results) {
      array<T> left(ctx, numbers<T>(70 * 70, 1)), right(ctx, numbers<T>(70 * 70, 2));
      array<float> result(ctx, std::vector<double>(70 * 70));
      local::gemm(ctx, {1, 70, 70, 70}, left.data(), right.data(), result.data());
      result.add_to(results);
    };
  };
  auto const tiles = multiply(type_is<float>{});
  auto const mma = multiply(type_is<bf16>{});
  for (int const barrier : {0, 1, 2}) {
    CHECK(is_caught({barrier, -1, false}, tiles));
    CHECK(is_caught({barrier, -1, false}, mma));
  }
  CHECK(is_caught({-1, -1, true}, tiles));
  CHECK(is_caught({-1, -1, true}, mma));
  CHECK_FALSE(is_caught({}, tiles));
  CHECK_FALSE(is_caught({}, mma));
}

}  // namespace
}  // namespace dtm::kernel_test
