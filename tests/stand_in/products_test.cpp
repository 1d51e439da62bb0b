// Matrix products against a plain row-major one, and what is refused or recorded.

#include <dtm/core/element.hpp>

#include "device.hpp"

using namespace stand_in_test;
using dtm::bf16;

namespace {

struct handle {
  cublasHandle_t value = nullptr;
  handle() { DTM_OK(cublasCreate(&value)); }
  ~handle() { cublasDestroy(value); }
  operator cublasHandle_t() const { return value; }
};

template <class T>
std::vector<T> numbers(std::size_t count, int salt) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(T(float(int((i * 7 + std::size_t(salt) * 3) % 11) - 5)));
  return values;
}

template <class T>
constexpr cudaDataType type_of = std::is_same_v<T, double>  ? CUDA_R_64F
                                 : std::is_same_v<T, float> ? CUDA_R_32F
                                                            : CUDA_R_16BF;

/// c = alpha op(a) op(b) + beta c for batches of row-major matrices; whole numbers, so exact.
template <class T>
std::vector<double> expected(bool left, bool right, int m, int n, int k, int batches,
                             std::vector<T> const& a, std::vector<T> const& b,
                             std::vector<T> const& c, double alpha, double beta) {
  std::vector<double> result;
  for (int batch = 0; batch < batches; ++batch)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int x = 0; x < k; ++x)
          sum += double(a[std::size_t(batch * m * k + (left ? x * m + i : i * k + x))]) *
                 double(b[std::size_t(batch * k * n + (right ? j * k + x : x * n + j))]);
        result.push_back(alpha * sum + beta * double(c[std::size_t(batch * m * n + i * n + j)]));
      }
  return result;
}

/// The row-major product by a column-major library: the operands change places.
template <class T, class Scale>
void check(cublasComputeType_t compute) {
  int const m = 3, n = 4, k = 5, batches = 2;
  auto const a = numbers<T>(m * k * batches, 1), b = numbers<T>(k * n * batches, 2),
             c = numbers<T>(m * n * batches, 3);
  for (bool left : {false, true})
    for (bool right : {false, true})
      for (double beta : {0.0, 2.0}) {
        stand_in::reset();
        array<T> x(a), y(b), z(c);
        handle h;
        stream s;
        DTM_OK(cublasSetStream(h, s));
        Scale alpha = 3, scale = Scale(beta);
        DTM_OK(cublasGemmStridedBatchedEx(
            h, right ? CUBLAS_OP_T : CUBLAS_OP_N, left ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &alpha,
            y.data(), type_of<T>, right ? k : n, k * n, x.data(), type_of<T>, left ? m : k, m * k,
            &scale, z.data(), type_of<T>, n, m * n, batches, compute, CUBLAS_GEMM_DEFAULT));
        alpha = scale = 100;  // were read by the call
        CHECK(z.now() == c);
        DTM_OK(cudaStreamSynchronize(s));
        auto const want = expected(left, right, m, n, k, batches, a, b, c, 3, beta);
        auto const got = z.now();
        for (std::size_t i = 0; i < want.size(); ++i)
          CHECK(double(got[i]) == double(T(float(want[i]))));
        REQUIRE(stand_in::gemms().size() == 1);
        CHECK(!stand_in::gemms()[0].tf32);
        CHECK(stand_in::gemms()[0].batches == 2);
      }
}

}  // namespace

TEST_CASE("products in all four transpositions, types and precisions") {
  fresh const each;
  check<float, float>(CUBLAS_COMPUTE_32F);
  check<float, float>(CUBLAS_COMPUTE_32F_PEDANTIC);
  check<double, double>(CUBLAS_COMPUTE_64F);
  check<bf16, float>(CUBLAS_COMPUTE_32F);
}

TEST_CASE("leading dimensions and the shorter functions") {
  fresh const each;
  handle h;
  array<float> a(numbers<float>(20, 1)), b(numbers<float>(20, 2)), c(20), d(20);
  array<double> e(numbers<double>(20, 1)), f(20);
  float const one = 1, zero = 0;
  double const one_wide = 1, zero_wide = 0;
  DTM_OK(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.data(), 4, 8,
                                   b.data(), 3, 6, &zero, c.data(), 5, 10, 2));
  DTM_OK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.data() + 8, CUDA_R_32F, 4,
                      b.data() + 6, CUDA_R_32F, 3, &zero, d.data(), CUDA_R_32F, 5,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  DTM_OK(cublasDgemmStridedBatched(h, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, 20, &one_wide, e.data(), 20,
                                   0, e.data(), 20, 0, &zero_wide, f.data(), 1, 0, 1));
  DTM_OK(cudaDeviceSynchronize());
  auto const x = a.now(), y = b.now();
  CHECK(c.now()[11] == x[9] * y[6] + x[13] * y[7]);
  CHECK(d.now()[1] == c.now()[11]);
  CHECK(c.now()[2] != c.now()[2]);  // between the columns nothing is written
  double sum = 0;
  for (double v : e.now()) sum += v * v;
  CHECK(f.now()[0] == sum);
}

TEST_CASE("with beta 0 the old content is not read") {
  fresh const each;
  handle h;
  array<float> a(std::vector<float>{2}), b(std::vector<float>{3}), c(1);
  float const one = 1, zero = 0;
  auto const run = [&](float const* beta) {
    DTM_OK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), CUDA_R_32F, 1,
                        b.data(), CUDA_R_32F, 1, beta, c.data(), CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT));
    DTM_OK(cudaDeviceSynchronize());
    return c.now()[0];
  };
  auto const with_nan = run(&one);
  CHECK(with_nan != with_nan);
  CHECK(run(&zero) == 6);
}

TEST_CASE("reduced precision is seen, in the log and in the numbers") {
  fresh const each;
  handle h;
  array<float> a(std::vector<float>{1.0001f}), c(1);
  float const one = 1, zero = 0;
  auto const run = [&](cublasComputeType_t compute) {
    DTM_OK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), CUDA_R_32F, 1,
                        a.data(), CUDA_R_32F, 1, &zero, c.data(), CUDA_R_32F, 1, compute,
                        CUBLAS_GEMM_DEFAULT));
    DTM_OK(cudaDeviceSynchronize());
    return c.now()[0];
  };
  CHECK(run(CUBLAS_COMPUTE_32F) == 1.0001f * 1.0001f);
  CHECK(run(CUBLAS_COMPUTE_32F_FAST_TF32) == 1);
  DTM_OK(cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH));
  CHECK(run(CUBLAS_COMPUTE_32F) == 1);
  CHECK(run(CUBLAS_COMPUTE_32F_PEDANTIC) != 1);
  cublasMath_t mode = CUBLAS_DEFAULT_MATH;
  DTM_OK(cublasGetMathMode(h, &mode));
  CHECK(mode == CUBLAS_TF32_TENSOR_OP_MATH);
  std::vector<bool> seen;
  for (auto const& g : stand_in::gemms()) seen.push_back(g.tf32);
  CHECK(seen == std::vector<bool>{false, true, true, false});
}

TEST_CASE("the workspace holds until the stream is set") {
  fresh const each;
  handle h;
  stream s;
  array<char> workspace(1024);
  array<float> a(std::vector<float>{1}), c(1);
  float const one = 1, zero = 0;
  auto const run = [&] {
    DTM_OK(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), 1, 0,
                                     a.data(), 1, 0, &zero, c.data(), 1, 0, 1));
    return stand_in::gemms().back().own_workspace;
  };
  CHECK(!run());
  DTM_OK(cublasSetWorkspace(h, workspace.data(), 1024));
  CHECK(run());
  DTM_OK(cublasSetStream(h, s));
  CHECK(!run());
  CHECK(cublasSetWorkspace(h, workspace.data() + 4, 512) == CUBLAS_STATUS_INVALID_VALUE);
  float host = 0;
  CHECK(cublasSetWorkspace(h, &host, sizeof host) == CUBLAS_STATUS_INVALID_VALUE);
  DTM_OK(cudaDeviceSynchronize());
}

TEST_CASE("what cuBLAS refuses") {
  fresh const each;
  handle h;
  array<float> a(6), b(6), c(4);
  float const one = 1;
  auto const run = [&](int a_leading, int b_leading, int c_leading, cudaDataType type,
                       cublasComputeType_t compute) {
    return cublasGemmEx(h, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 3, &one, a.data(), type, a_leading,
                        b.data(), type, b_leading, &one, c.data(), CUDA_R_32F, c_leading, compute,
                        CUBLAS_GEMM_DEFAULT);
  };
  auto const f = CUDA_R_32F;
  CHECK(run(3, 3, 2, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_SUCCESS);
  CHECK(run(2, 3, 2, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run(3, 2, 2, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run(3, 3, 1, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run(3, 4, 2, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_INVALID_VALUE);  // beyond the end
  CHECK(run(3, 3, 2, CUDA_R_64F, CUBLAS_COMPUTE_64F) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(std::string(cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)).find("not supported") !=
        std::string::npos);
  stand_in::fail_call("cublasGemmEx", 1, CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK(run(3, 3, 2, f, CUBLAS_COMPUTE_32F) == CUBLAS_STATUS_EXECUTION_FAILED);
  DTM_OK(cudaDeviceSynchronize());
}

TEST_CASE("a product is captured with its graph") {
  fresh const each;
  handle h;
  stream s;
  array<float> a(std::vector<float>{2}), c(std::vector<float>{1});
  float const one = 1, zero = 0;
  DTM_OK(cublasSetStream(h, s));
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  DTM_OK(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.data(), 1, 0,
                                   c.data(), 1, 0, &zero, c.data(), 1, 0, 1));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  DTM_OK(cudaStreamEndCapture(s, &graph));
  DTM_OK(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) DTM_OK(cudaGraphLaunch(executable, s));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(c.now()[0] == 8);
  DTM_OK(cudaGraphExecDestroy(executable));
  DTM_OK(cudaGraphDestroy(graph));
}
