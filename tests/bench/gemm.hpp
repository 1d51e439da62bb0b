#pragma once
// A product as bench_gemm hands it to any library: row-major, contiguous, fp32.

#include <cstdint>
#include <functional>
#include <string>

namespace dtm::bench {

/// As dtm::local::gemm_shape: a transposed operand is stored [k, m] or [n, k].
struct product_shape {
  std::int64_t batch, m, n, k;
  bool left_transposed, right_transposed;

  std::int64_t left_row() const { return left_transposed ? m : k; }
  std::int64_t right_row() const { return right_transposed ? k : n; }
};

using product_function =
    std::function<void(product_shape const&, float const*, float const*, float*)>;

/// In a unit of its own, which has the flags that suit Eigen (CMakeLists.txt).
void eigen_product(product_shape const&, float const* left, float const* right, float* result);
std::string eigen_version();

}  // namespace dtm::bench
