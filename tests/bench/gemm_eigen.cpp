// Eigen as a peer, with the flags that make it fastest. Under another name, since the linker would
// otherwise take what another unit, with other flags, has made of the same templates.

#define EIGEN_DONT_PARALLELIZE
#define Eigen dtm_bench_eigen
#include <Eigen/Core>

#include "gemm.hpp"

namespace dtm::bench {

namespace {
using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using operand = Eigen::Map<row_major const>;
}  // namespace

void eigen_product(product_shape const& s, float const* left, float const* right, float* result) {
  for (std::int64_t i = 0; i < s.batch; ++i) {
    operand const a(left + i * s.m * s.k, s.left_transposed ? s.k : s.m, s.left_row());
    operand const b(right + i * s.k * s.n, s.right_transposed ? s.n : s.k, s.right_row());
    Eigen::Map<row_major> c(result + i * s.m * s.n, s.m, s.n);
    if (s.left_transposed)
      c.noalias() = a.transpose() * b;
    else if (s.right_transposed)
      c.noalias() = a * b.transpose();
    else
      c.noalias() = a * b;
  }
}

std::string eigen_version() {
  return std::to_string(EIGEN_WORLD_VERSION) + '.' + std::to_string(EIGEN_MAJOR_VERSION) + '.' +
         std::to_string(EIGEN_MINOR_VERSION) + ", " + Eigen::SimdInstructionSetsInUse();
}

}  // namespace dtm::bench
