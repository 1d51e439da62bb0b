#pragma once
// Which vector instructions the host's own loops use. They are compiled for every set, whatever
// flags the program is compiled with, and chosen when it runs: code is between DTM_TILES_BEGIN_... and
// DTM_TILES_END in host/tiles.hpp.

#include <string>

#include "dtm/core/errors.hpp"

#if defined(__x86_64__)
#define DTM_TILES_X86 1
#include <immintrin.h>
#else
#define DTM_TILES_X86 0
#endif

#define DTM_TILES_INLINE inline __attribute__((always_inline))
#define DTM_TILES_PRAGMA(x) _Pragma(#x)
#define DTM_TILES_AVX2 "avx2,fma"
#define DTM_TILES_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"
// Every function up to the end is compiled for these instructions. Loops behind DTM_TILES_ROLLED are not
// unrolled by clang, which does that to any loop where it is told of some processors.
#if defined(__clang__)
#define DTM_TILES_BEGIN(set) \
  DTM_TILES_PRAGMA(clang attribute push(__attribute__((target(set))), apply_to = function))
#define DTM_TILES_END DTM_TILES_PRAGMA(clang attribute pop)
#define DTM_TILES_ROLLED DTM_TILES_PRAGMA(clang loop unroll(disable))
#else
#define DTM_TILES_BEGIN(set) DTM_TILES_PRAGMA(GCC push_options) DTM_TILES_PRAGMA(GCC target(set))
#define DTM_TILES_END DTM_TILES_PRAGMA(GCC pop_options)
#define DTM_TILES_ROLLED
#endif

namespace dtm {

/// Wider ones last. `portable`: vectors of 16 bytes that any compiler has.
enum class instruction_set { portable, avx2, avx512 };

inline char const* name_of(instruction_set set) {
  return set == instruction_set::avx512 ? "avx512"
         : set == instruction_set::avx2 ? "avx2"
                                        : "portable";
}

/// The widest that this processor has.
inline instruction_set widest_instructions() {
#if DTM_TILES_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return instruction_set::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return instruction_set::avx2;
#endif
  return instruction_set::portable;
}

}  // namespace dtm
