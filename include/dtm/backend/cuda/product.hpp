#pragma once
// Matrix products on a GPU: cuBLAS, or the library's own kernels where the options of the context
// say so. cuBLAS has one workspace, in the order of one stream, so that its sums have the same
// order every time (law L13). fp32 is fp32: nothing is rounded to TF32 on the way.

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dtm/backend/cuda/status.hpp"
#include "dtm/backend/device/product.hpp"
#include "dtm/core/element.hpp"

namespace dtm::gpu {

enum class products { cublas, own };

namespace detail {

template <class T>
inline constexpr cudaDataType cublas_type = std::is_same_v<T, double>  ? CUDA_R_64F
                                            : std::is_same_v<T, float> ? CUDA_R_32F
                                                                       : CUDA_R_16BF;

/// A handle of cuBLAS that works on one stream.
class cublas {
 public:
  /// `workspace` belongs to the caller and outlives this.
  cublas(cudaStream_t stream, void* workspace, std::size_t bytes) {
    check(cublasCreate(&handle_), "cublasCreate");
    try {
      check(cublasSetStream(handle_, stream), "cublasSetStream");
      check(cublasSetWorkspace(handle_, workspace, bytes), "cublasSetWorkspace");
      check(cublasSetMathMode(handle_,
                              cublasMath_t(CUBLAS_DEFAULT_MATH |
                                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
            "cublasSetMathMode");
    } catch (...) {
      forget(cublasDestroy(handle_));
      throw;
    }
  }
  cublas(cublas const&) = delete;
  cublas& operator=(cublas const&) = delete;
  ~cublas() { forget(cublasDestroy(handle_)); }

  /// All row-major: what is row-major here is the transpose, column-major, there, and
  /// (left right)^T = right^T left^T. No extent is 0.
  template <class T, class Result>
  void multiply(local::gemm_shape const& s, T const* left, T const* right, Result* result) const {
    using A = accumulate_t<T>;
    A const one = 1, before = s.accumulate ? 1 : 0;
    check(cublasGemmStridedBatchedEx_64(
              handle_, s.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
              s.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, s.n, s.m, s.k, &one,  //
              right, cublas_type<T>, s.right_transposed ? s.k : s.n, s.k * s.n,    //
              left, cublas_type<T>, s.left_transposed ? s.m : s.k, s.m * s.k,      //
              &before, result, cublas_type<Result>, s.n, s.m * s.n, s.batch,
              std::is_same_v<A, double> ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
              CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  }

 private:
  cublasHandle_t handle_ = nullptr;
};

}  // namespace detail

}  // namespace dtm::gpu

namespace dtm::local {

template <>
struct gemm_impl<cuda> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& s, T const* left, T const* right,
                  Result* result) {
    static_assert(std::is_same_v<Result, T> || std::is_same_v<Result, accumulate_t<T>>,
                  "dtm gemm: the result is of the operands' type or of its accumulation type");
    auto& device = ctx.device();
    if (device.chosen().products == gpu::products::own)
      return device_product(ctx, s, left, right, result);
    std::int64_t const count = s.batch * s.m * s.n;
    if (count == 0) return;
    if (s.k > 0) return device.cublas().multiply(s, left, right, result);
    if (!s.accumulate) ctx.memory().fill_bytes(result, 0, std::size_t(count) * sizeof(Result));
  }
};

}  // namespace dtm::local
