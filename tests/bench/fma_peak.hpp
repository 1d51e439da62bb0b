#pragma once
// The rate of fused multiply-adds in registers, one thread, fp32: what no product can exceed. The
// widest vectors that this processor has, whatever the flags of the compiler.

#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dtm::bench {

struct fma_loop {
  std::string instructions;
  double flops;  // of one run
  void (*run)();
};

namespace detail {

inline constexpr int fma_turns = 100000, fma_chains = 12;  // latency 4, two a cycle, and some more

// Twelve variables, since compilers leave an array in memory. The empty instruction keeps each in
// its register and the sums from being made ahead.
#define DTM_BENCH_TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)

#if defined(__x86_64__)
#define DTM_BENCH_BEGIN(i) auto sum##i = factor;
#define DTM_BENCH_STEP(i)                         \
  sum##i = _mm256_fmadd_ps(sum##i, factor, term); \
  asm volatile("" : "+x"(sum##i));
__attribute__((target("avx2,fma"))) inline void fma_loop_avx2() {
  __m256 const factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
  DTM_BENCH_TWELVE(DTM_BENCH_BEGIN)
  for (int turn = 0; turn < fma_turns; ++turn) {
    DTM_BENCH_TWELVE(DTM_BENCH_STEP)
  }
}
#undef DTM_BENCH_STEP
#define DTM_BENCH_STEP(i)                         \
  sum##i = _mm512_fmadd_ps(sum##i, factor, term); \
  asm volatile("" : "+v"(sum##i));
__attribute__((target("avx512f"))) inline void fma_loop_avx512() {
  __m512 const factor = _mm512_set1_ps(0.999f), term = _mm512_set1_ps(0.001f);
  DTM_BENCH_TWELVE(DTM_BENCH_BEGIN)
  for (int turn = 0; turn < fma_turns; ++turn) {
    DTM_BENCH_TWELVE(DTM_BENCH_STEP)
  }
}
#undef DTM_BENCH_STEP
#undef DTM_BENCH_BEGIN
#undef DTM_BENCH_TWELVE
#endif

typedef float four_floats __attribute__((vector_size(16)));
inline void fma_loop_portable() {
  four_floats sums[fma_chains];
  four_floats const factor = {0.999f, 0.999f, 0.999f, 0.999f}, term = factor - 0.998f;
  for (auto& sum : sums) sum = factor;
  for (int turn = 0; turn < fma_turns; ++turn)
    for (auto& sum : sums) {
      sum = sum * factor + term;
      asm volatile("" : "+m"(sum));
    }
}

}  // namespace detail

inline fma_loop fma_peak() {
  using namespace detail;
  double const flops = 2.0 * fma_turns * fma_chains;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", 16 * flops, fma_loop_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {"AVX2 and FMA", 8 * flops, fma_loop_avx2};
#endif
  return {"four at a time, not fused", 4 * flops, fma_loop_portable};
}

}  // namespace dtm::bench
