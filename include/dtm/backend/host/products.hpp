#pragma once
// The products of backend/host/gemm.hpp, by Eigen. The unit that has them where
// DTM_SEPARATE_PRODUCTS is defined:
//
//   #include "dtm/backend/host/products.hpp"
//   DTM_INSTANTIATE_PRODUCTS

#include <Eigen/Core>

#include "dtm/backend/host/gemm.hpp"

#define DTM_INSTANTIATE_PRODUCTS                                                                \
  template void dtm::local::detail::gemm_one<float>(dtm::local::gemm_shape const&, float const*, \
                                                    float const*, float*);                      \
  template void dtm::local::detail::gemm_one<double>(dtm::local::gemm_shape const&,             \
                                                     double const*, double const*, double*);

namespace dtm::local::detail {

template <class T>
using row_major = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using matrix_map = Eigen::Map<row_major<T>, Eigen::Unaligned>;
template <class T>
using constant_map = Eigen::Map<row_major<T> const, Eigen::Unaligned>;

template <class T>
void gemm_one(gemm_shape const& shape, T const* left, T const* right, T* result) {
  constant_map<T> const a(left, shape.left_transposed ? shape.k : shape.m,
                          shape.left_transposed ? shape.m : shape.k);
  constant_map<T> const b(right, shape.right_transposed ? shape.n : shape.k,
                          shape.right_transposed ? shape.k : shape.n);
  matrix_map<T> c(result, shape.m, shape.n);
  if (!shape.accumulate) c.setZero();
  if (shape.left_transposed && shape.right_transposed)
    c.noalias() += a.transpose() * b.transpose();
  else if (shape.left_transposed)
    c.noalias() += a.transpose() * b;
  else if (shape.right_transposed)
    c.noalias() += a * b.transpose();
  else
    c.noalias() += a * b;
}

}  // namespace dtm::local::detail
