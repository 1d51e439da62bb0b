// Matrix products, by the library's own gemm and by others, and the rate of fused multiply-adds
// that bounds them all.
//
//   bench_gemm LIBRARY SHAPE SECONDS [SAMPLES | --planted]
//
//   LIBRARY   dtm, openblas, onednn, eigen; fma for the peak, with any shape
//   SHAPE     a name of the table below
//   SECONDS   that a sample lasts at least
//   SAMPLES   how many are taken; without it, one for every line of standard input
//   --planted the result of dtm is wrong by one in ten thousand, which the check must find
//
// One thread. A library that the program was built without is one line with "missing", status 3.

#include "gemm.hpp"

#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "dtm/comm/environment.hpp"
#include "dtm/host.hpp"
#include "dtm/testing/draw.hpp"
#include "fma_peak.hpp"
#include "measure.hpp"

#ifdef DTM_BENCH_OPENBLAS
#include <cblas.h>
extern "C" char* openblas_get_config(void);
extern "C" char* openblas_get_corename(void);
#endif
#ifdef DTM_BENCH_ONEDNN
#include <dnnl.h>
#endif

namespace dtm::bench {
namespace {

struct named_shape {
  char const* name;
  product_shape sizes;
};

// The layouts are those of the modules: a linear map has its weight as [out, in], a weight gradient
// sums over positions, planes are the triangle products, outgoing, incoming, and of a backward.
constexpr named_shape shapes[] = {
    {"in_cache", {1, 192, 128, 128, false, true}},
    {"streaming", {1, 65536, 256, 128, false, true}},
    {"weight_gradient", {1, 128, 256, 65536, true, false}},
    {"planes_nt_128", {128, 128, 128, 128, false, true}},
    {"planes_tn_128", {128, 128, 128, 128, true, false}},
    {"planes_nn_128", {128, 128, 128, 128, false, false}},
    {"planes_nt_256", {128, 256, 256, 256, false, true}},
    {"tiny", {2, 7, 5, 9, false, true}},
};

product_shape shape_of(std::string const& name) {
  for (auto const& shape : shapes)
    if (name == shape.name) return shape.sizes;
  throw std::invalid_argument("bench_gemm has no shape " + name);
}

/// A context as every caller of dtm::local::gemm has one; it is one rank.
class own_products {
 public:
  own_products(int& argc, char**& argv)
      : mpi_(argc, argv), world_(MPI_COMM_WORLD), ctx_(world_, {1}) {}

  std::string instructions() { return name_of(ctx_.device().instructions()); }
  void run(product_shape const& s, float const* left, float const* right, float* result) {
    local::gemm(ctx_, {s.batch, s.m, s.n, s.k, s.left_transposed, s.right_transposed}, left, right,
                result);
  }

 private:
  comm::environment mpi_;
  comm::world world_;
  context<host, mesh<dp>> ctx_;
};

#ifdef DTM_BENCH_OPENBLAS
void openblas_product(product_shape const& s, float const* left, float const* right,
                      float* result) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    cblas_sgemm(CblasRowMajor, s.left_transposed ? CblasTrans : CblasNoTrans,
                s.right_transposed ? CblasTrans : CblasNoTrans, int(s.m), int(s.n), int(s.k), 1,
                left + b * s.m * s.k, int(s.left_row()), right + b * s.k * s.n, int(s.right_row()),
                0, result + b * s.m * s.n, int(s.n));
}
#endif
#ifdef DTM_BENCH_ONEDNN
void onednn_product(product_shape const& s, float const* left, float const* right, float* result) {
  for (std::int64_t b = 0; b < s.batch; ++b)
    if (dnnl_sgemm(s.left_transposed ? 'T' : 'N', s.right_transposed ? 'T' : 'N', s.m, s.n, s.k, 1,
                   left + b * s.m * s.k, s.left_row(), right + b * s.k * s.n, s.right_row(), 0,
                   result + b * s.m * s.n, s.n) != dnnl_success)
      throw std::runtime_error("dnnl_sgemm failed");
}
#endif

struct library {
  std::string version;
  product_function product;
};

/// `product` is empty where the library is missing.
library find_library(std::string const& name, int& argc, char**& argv) {
  if (name == "dtm") {
    auto own = std::make_shared<own_products>(argc, argv);
    return {own->instructions(), [own](auto const& s, auto... data) { own->run(s, data...); }};
  }
#ifdef DTM_BENCH_OPENBLAS
  if (name == "openblas")
    return {std::string(openblas_get_config()) + ", core " + openblas_get_corename(),
            openblas_product};
#endif
#ifdef DTM_BENCH_ONEDNN
  if (name == "onednn") {
    dnnl_version_t const* const v = dnnl_version();
    return {
        std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch),
        onednn_product};
  }
#endif
#ifdef DTM_BENCH_EIGEN
  if (name == "eigen") return {eigen_version(), eigen_product};
#endif
  return {};
}

std::vector<float> drawn(std::int64_t count, char const* name) {
  std::uint64_t const key = testing::key_of(0, name);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(testing::uniform(key, i));
  return values;
}

/// The largest error of some elements, in units of what rounding k products and sums to fp32 is
/// expected to leave: sqrt(k) eps times the root of the sum of squared terms, which is sqrt(k) / 3.
double worst_error(product_shape const& s, float const* left, float const* right,
                   float const* result) {
  double worst = 0;
  for (std::uint64_t sample = 0; sample < 64; ++sample) {
    auto const pick = [&](std::uint64_t which, std::int64_t below) {
      return std::int64_t(testing::bits(which, sample) % std::uint64_t(below));
    };
    std::int64_t const b = pick(1, s.batch), i = pick(2, s.m), j = pick(3, s.n);
    double sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k)
      sum += double(left[b * s.m * s.k + (s.left_transposed ? k * s.m + i : i * s.k + k)]) *
             double(right[b * s.k * s.n + (s.right_transposed ? j * s.k + k : k * s.n + j)]);
    double const error = std::abs(double(result[(b * s.m + i) * s.n + j]) - sum);
    worst = std::max(worst, error / (double(s.k) / 3 * 0x1p-24));
  }
  return worst;
}

template <class Work>
void measure(Work const& work, double seconds, int samples) {
  work();
  double const begin = now();
  work();
  int const runs = runs_to_fill(seconds, now() - begin);
  std::string command;
  for (int sample = 0; samples > 0 ? sample < samples : bool(std::getline(std::cin, command));
       ++sample) {
    if (runs > 1) work();
    double const start = now(), cpu_start = cpu_now();
    for (int run = 0; run < runs; ++run) work();
    double const end = now(), cpu_end = cpu_now();
    line()
        .number("seconds", (end - start) / runs)
        .number("cpu_seconds", (cpu_end - cpu_start) / runs)
        .print();
  }
}

int run(int argc, char** argv) {
  std::string const by = argv[1];
  double const seconds = std::strtod(argv[3], nullptr);
  bool const planted = argc > 4 && std::string(argv[4]) == "--planted";
  int const samples = argc > 4 && !planted ? std::atoi(argv[4]) : 0;
  if (by == "fma") {
    auto const peak = fma_peak();
    line().text("version", peak.instructions).number("flops", peak.flops).print();
    measure([&] { peak.run(); }, seconds, samples);
    return 0;
  }
  library const chosen = find_library(by, argc, argv);
  if (!chosen.product) {
    line().text("missing", by).print();
    return 3;
  }
  product_shape const s = shape_of(argv[2]);
  auto const left = drawn(s.batch * s.m * s.k, "left"), right = drawn(s.batch * s.k * s.n, "right");
  std::vector<float> result(std::size_t(s.batch * s.m * s.n));
  auto const work = [&] { chosen.product(s, left.data(), right.data(), result.data()); };
  work();
  if (planted && by == "dtm")
    for (float& value : result) value *= 1.0001f;
  line()
      .text("version", chosen.version)
      .number("flops", 2.0 * double(s.batch) * double(s.m) * double(s.n) * double(s.k))
      .number("error", worst_error(s, left.data(), right.data(), result.data()))
      .print();
  measure(work, seconds, samples);
  return 0;
}

}  // namespace
}  // namespace dtm::bench

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_gemm LIBRARY SHAPE SECONDS [SAMPLES]\n");
    return 2;
  }
  try {
    return dtm::bench::run(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "bench_gemm: %s\n", e.what());
    return 1;
  }
}
