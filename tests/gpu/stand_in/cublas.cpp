// The stand-in for cuBLAS: matrix products as the manual has them, column-major, by plain loops
// when the stream gets there.

#include <cublas_v2.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include <dtm/core/element.hpp>

#include "arena.hpp"
#include "calls.hpp"
#include "memory.hpp"
#include "queue.hpp"
#include "stand_in.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  void* workspace = nullptr;
};

namespace stand_in {
namespace {

std::vector<cublasHandle_t>& handles() {
  static auto* const all = new std::vector<cublasHandle_t>;
  return *all;
}
std::vector<gemm>& log() {
  static auto* const all = new std::vector<gemm>;
  return *all;
}

bool is_handle(cublasHandle_t handle) {
  return std::find(handles().begin(), handles().end(), handle) != handles().end();
}

struct matrix {
  void const* data;
  cudaDataType type;
  std::int64_t leading, stride;
};

struct product {
  gemm what;
  matrix a, b, c;
  void const *alpha, *beta;
};

std::size_t bytes_of(cudaDataType type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

double element(matrix const& m, std::int64_t at) {
  switch (m.type) {
    case CUDA_R_64F:
      return static_cast<double const*>(m.data)[at];
    case CUDA_R_32F:
      return static_cast<float const*>(m.data)[at];
    default:
      return double(static_cast<dtm::bf16 const*>(m.data)[at]);
  }
}

void set_element(matrix const& m, std::int64_t at, double value) {
  auto* const data = const_cast<void*>(m.data);
  switch (m.type) {
    case CUDA_R_64F:
      static_cast<double*>(data)[at] = value;
      break;
    case CUDA_R_32F:
      static_cast<float*>(data)[at] = float(value);
      break;
    default:
      static_cast<dtm::bf16*>(data)[at] = dtm::bf16(float(value));
  }
}

/// 10 bits of mantissa, as the tensor cores read a float in TF32.
float rounded_to_tf32(float value) {
  auto word = std::bit_cast<std::uint32_t>(value);
  if (!std::isfinite(value)) return value;
  word += 0xfffu + ((word >> 13) & 1u);
  return std::bit_cast<float>(word & ~0x1fffu);
}

template <class T>  // of the computation
void multiply(product const& p, T alpha, T beta) {
  auto const read = [&](matrix const& m, std::int64_t at) {
    auto const value = T(element(m, at));
    if constexpr (std::is_same_v<T, float>)
      if (p.what.tf32) return rounded_to_tf32(value);
    return value;
  };
  bool const left = p.what.left != CUBLAS_OP_N, right = p.what.right != CUBLAS_OP_N;
  for (std::int64_t batch = 0; batch < p.what.batches; ++batch) {
    for (std::int64_t column = 0; column < p.what.n; ++column) {
      for (std::int64_t row = 0; row < p.what.m; ++row) {
        T sum = 0;
        for (std::int64_t k = 0; k < p.what.k; ++k)
          sum += read(p.a,
                      batch * p.a.stride + (left ? k + row * p.a.leading : row + k * p.a.leading)) *
                 read(p.b, batch * p.b.stride +
                               (right ? column + k * p.b.leading : k + column * p.b.leading));
        std::int64_t const at = batch * p.c.stride + row + column * p.c.leading;
        T value = alpha * sum;
        if (beta != 0) value += beta * T(element(p.c, at));  // with 0, c is not read
        set_element(p.c, at, double(value));
      }
    }
  }
}

bool fits(matrix const& m, std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  if (rows == 0 || columns == 0 || batches == 0) return true;
  std::int64_t first = 0, last = (columns - 1) * m.leading + rows;
  (m.stride < 0 ? first : last) += (batches - 1) * m.stride;
  auto const size = std::int64_t(bytes_of(m.type));
  auto const* const start = static_cast<char const*>(m.data) + first * size;
  auto const bytes = std::size_t((last - first) * size);
  return arena::the().holds(start, bytes) || is_pinned_range(start, bytes);
}

bool is_float(cudaDataType type) {
  return type == CUDA_R_32F;
}

bool supported(product const& p) {
  auto const narrow = [](cudaDataType t) { return t == CUDA_R_32F || t == CUDA_R_16BF; };
  if (p.a.type != p.b.type) return false;
  switch (p.what.compute) {
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      return narrow(p.a.type) && narrow(p.c.type) && !(is_float(p.a.type) && !is_float(p.c.type));
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return is_float(p.a.type) && is_float(p.c.type);
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return p.a.type == CUDA_R_64F && p.c.type == CUDA_R_64F;
    default:
      return false;
  }
}

template <class T>
std::function<void()> work_of(product const& p, cublasPointerMode_t pointers) {
  auto const *alpha = static_cast<T const*>(p.alpha), *beta = static_cast<T const*>(p.beta);
  if (pointers == CUBLAS_POINTER_MODE_DEVICE) return [=] { multiply<T>(p, *alpha, *beta); };
  return [p, alpha = *alpha, beta = *beta] { multiply<T>(p, alpha, beta); };
}

cublasStatus_t run(cublasHandle_t handle, product p) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  auto& what = p.what;
  bool const left = what.left != CUBLAS_OP_N, right = what.right != CUBLAS_OP_N;
  if (what.m < 0 || what.n < 0 || what.k < 0 || what.batches < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::int64_t const a_rows = left ? what.k : what.m, b_rows = right ? what.n : what.k;
  if (p.a.leading < std::max<std::int64_t>(1, a_rows) ||
      p.b.leading < std::max<std::int64_t>(1, b_rows) ||
      p.c.leading < std::max<std::int64_t>(1, what.m))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!supported(p)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!p.alpha || !p.beta) return CUBLAS_STATUS_INVALID_VALUE;
  if (what.m == 0 || what.n == 0 || what.batches == 0) return CUBLAS_STATUS_SUCCESS;
  if (!fits(p.a, a_rows, left ? what.m : what.k, what.batches) ||
      !fits(p.b, b_rows, right ? what.k : what.n, what.batches) ||
      !fits(p.c, what.m, what.n, what.batches))
    return CUBLAS_STATUS_INVALID_VALUE;  // the real one would fault, or not
  what.math = handle->math;
  what.stream = handle->stream;
  what.own_workspace = handle->workspace != nullptr;
  what.a = p.a.type, what.b = p.b.type, what.c = p.c.type;
  bool const by_mode = (handle->math & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH &&
                       what.compute == CUBLAS_COMPUTE_32F && is_float(p.a.type);
  what.tf32 = by_mode || what.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  log().push_back(what);
  bool const wide =
      what.compute == CUBLAS_COMPUTE_64F || what.compute == CUBLAS_COMPUTE_64F_PEDANTIC;
  auto work = wide ? work_of<double>(p, handle->pointers) : work_of<float>(p, handle->pointers);
  auto const error = submit_once(handle->stream, "gemm", std::move(work));
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

product of(cublasOperation_t left, cublasOperation_t right, std::int64_t m, std::int64_t n,
           std::int64_t k, std::int64_t batches, cublasComputeType_t compute,
           cublasGemmAlgo_t algorithm, void const* alpha, void const* beta, matrix const& a,
           matrix const& b, matrix const& c) {
  gemm what{};
  what.left = left, what.right = right;
  what.m = m, what.n = n, what.k = k, what.batches = batches;
  what.compute = compute;
  what.algorithm = algorithm;
  return {what, a, b, c, alpha, beta};
}

}  // namespace

std::vector<gemm> const& gemms() {
  return log();
}
void forget_gemms() {
  log().clear();
}

}  // namespace stand_in

using namespace stand_in;

#define DTM_STAND_IN_CUBLAS(handle)   \
  DTM_STAND_IN_ENTER(cublasStatus_t); \
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  DTM_STAND_IN_ENTER(cublasStatus_t);
  *handle = new cublasContext;
  handles().push_back(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  DTM_STAND_IN_CUBLAS(handle);
  std::erase(handles(), handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  DTM_STAND_IN_ENTER(cublasStatus_t);
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  DTM_STAND_IN_CUBLAS(handle);
  handle->stream = stream;
  handle->workspace = nullptr;  // as documented: the default workspace is back
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  DTM_STAND_IN_CUBLAS(handle);
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t bytes) {
  DTM_STAND_IN_CUBLAS(handle);
  if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes > 0 && !arena::the().holds(workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = bytes > 0 ? workspace : nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  DTM_STAND_IN_CUBLAS(handle);
  handle->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  DTM_STAND_IN_CUBLAS(handle);
  *mode = handle->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  DTM_STAND_IN_CUBLAS(handle);
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}

char const* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_UNKNOWN";
  }
}

char const* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality is not supported";
    default:
      return "an unknown error";
  }
}

// The same with int and with 64-bit sizes.
#define DTM_STAND_IN_GEMM(suffix, Size)                                                           \
  cublasStatus_t cublasGemmStridedBatchedEx##suffix(                                              \
      cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right, Size m, Size n,     \
      Size k, void const* alpha, void const* a, cudaDataType a_type, Size a_leading,              \
      long long a_stride, void const* b, cudaDataType b_type, Size b_leading, long long b_stride, \
      void const* beta, void* c, cudaDataType c_type, Size c_leading, long long c_stride,         \
      Size batches, cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {                    \
    DTM_STAND_IN_ENTER(cublasStatus_t);                                                           \
    return run(handle, of(left, right, m, n, k, batches, compute, algorithm, alpha, beta,         \
                          {a, a_type, a_leading, a_stride}, {b, b_type, b_leading, b_stride},     \
                          {c, c_type, c_leading, c_stride}));                                     \
  }                                                                                               \
  cublasStatus_t cublasGemmEx##suffix(                                                            \
      cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right, Size m, Size n,     \
      Size k, void const* alpha, void const* a, cudaDataType a_type, Size a_leading,              \
      void const* b, cudaDataType b_type, Size b_leading, void const* beta, void* c,              \
      cudaDataType c_type, Size c_leading, cublasComputeType_t compute,                           \
      cublasGemmAlgo_t algorithm) {                                                               \
    DTM_STAND_IN_ENTER(cublasStatus_t);                                                           \
    return run(handle, of(left, right, m, n, k, 1, compute, algorithm, alpha, beta,               \
                          {a, a_type, a_leading, 0}, {b, b_type, b_leading, 0},                   \
                          {c, c_type, c_leading, 0}));                                            \
  }

DTM_STAND_IN_GEMM(, int)
DTM_STAND_IN_GEMM(_64, std::int64_t)

#define DTM_STAND_IN_TYPED_GEMM(name, T, type, compute)                                         \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t left, cublasOperation_t right,   \
                      int m, int n, int k, T const* alpha, T const* a, int a_leading,           \
                      long long a_stride, T const* b, int b_leading, long long b_stride,        \
                      T const* beta, T* c, int c_leading, long long c_stride, int batches) {    \
    DTM_STAND_IN_ENTER(cublasStatus_t);                                                         \
    return run(handle, of(left, right, m, n, k, batches, compute, CUBLAS_GEMM_DEFAULT, alpha,   \
                          beta, {a, type, a_leading, a_stride}, {b, type, b_leading, b_stride}, \
                          {c, type, c_leading, c_stride}));                                     \
  }

DTM_STAND_IN_TYPED_GEMM(cublasSgemmStridedBatched, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
DTM_STAND_IN_TYPED_GEMM(cublasDgemmStridedBatched, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)

}  // extern "C"
