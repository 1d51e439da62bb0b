// Matrix products on a GPU: every shape that a caller can ask for, in fp64, fp32 and bf16.

#include <cmath>

#include "on_gpu.hpp"

namespace {

using namespace dtm;
using namespace dtm::testing;

template <class T, class Result>
std::vector<double> reference(local::gemm_shape const& s, std::vector<T> const& left,
                              std::vector<T> const& right, std::vector<Result> const& before) {
  std::vector<double> result;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        double total = s.accumulate ? double(before[result.size()]) : 0;
        for (std::int64_t l = 0; l < s.k; ++l)
          total += double(left[std::size_t(b * s.m * s.k +
                                           (s.left_transposed ? l * s.m + i : i * s.k + l))]) *
                   double(right[std::size_t(b * s.k * s.n +
                                            (s.right_transposed ? j * s.k + l : l * s.n + j))]);
        result.push_back(total);
      }
  return result;
}

template <class T, class Result>
void check_shape(cuda_context& ctx, local::gemm_shape const& s) {
  auto const left = numbers<T>(s.batch * s.m * s.k, 1), right = numbers<T>(s.batch * s.k * s.n, 2);
  auto const before = numbers<Result>(s.batch * s.m * s.n, 3);
  auto const l = on_device(ctx, left), r = on_device(ctx, right);
  auto out = on_device(ctx, before);
  local::gemm(ctx, s, l.data(), r.data(), out.data());
  auto const got = from_device(ctx, out.data(), out.size());
  auto const expected = reference(s, left, right, before);
  double const unit = std::is_same_v<Result, bf16> ? 1.0 / 128 : 1e-5;
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(double(got[i]) - expected[i]) / (1 + std::abs(expected[i])));
  INFO(s.batch << " x " << s.m << " x " << s.n << " x " << s.k << ", transposed "
               << s.left_transposed << s.right_transposed << ", accumulate " << s.accumulate);
  CHECK(worst < unit);
}

template <class T, class Result = T>
void check_shapes() {
  cuda_context ctx(world(), all_on_cp1(), 0, staged());
  stand_in::reset();
  struct sizes {
    std::int64_t batch, m, n, k;
  };
  for (auto const& [batch, m, n, k] : {sizes{1, 5, 7, 3}, sizes{3, 4, 2, 9}, sizes{1, 1, 6, 17},
                                       sizes{2, 8, 1, 1}, sizes{1, 33, 16, 24}})
    for (int bits = 0; bits < 8; ++bits)
      check_shape<T, Result>(ctx, {batch, m, n, k, bool(bits & 1), bool(bits & 2), bool(bits & 4)});
  for (bool accumulate : {false, true}) {  // nothing to multiply
    check_shape<T, Result>(ctx, {2, 3, 4, 0, false, false, accumulate});
    check_shape<T, Result>(ctx, {2, 0, 4, 5, false, false, accumulate});
    check_shape<T, Result>(ctx, {2, 3, 0, 5, false, false, accumulate});
    check_shape<T, Result>(ctx, {0, 3, 4, 5, false, false, accumulate});
  }
  CHECK(stand_in::gemms().size() == 40);
  for (auto const& g : stand_in::gemms()) {
    CHECK_FALSE(g.tf32);
    CHECK(g.own_workspace);
    CHECK(g.stream == ctx.device().compute());
    CHECK(g.compute == (std::is_same_v<T, double> ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F));
    CHECK((g.math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) != 0);
  }
}

}  // namespace

TEST_CASE("products by cuBLAS, fp64") {
  check_shapes<double>();
}
TEST_CASE("products by cuBLAS, fp32 without TF32") {
  check_shapes<float>();
}
TEST_CASE("products by cuBLAS, bf16") {
  check_shapes<bf16>();
}
TEST_CASE("products by cuBLAS, bf16 to fp32") {
  check_shapes<bf16, float>();
}
TEST_CASE("own products, where the options say so") {  // their shapes are tests/kernels' matter
  auto options = staged();
  options.products = gpu::products::own;
  cuda_context ctx(world(), all_on_cp1(), 0, options);
  stand_in::reset();
  check_shape<float, float>(ctx, {2, 5, 7, 3, false, true, true});
  check_shape<bf16, bf16>(ctx, {1, 5, 7, 3, true, false, false});
  check_shape<bf16, float>(ctx, {1, 3, 4, 0, false, false, false});
  CHECK(stand_in::gemms().empty());
}
