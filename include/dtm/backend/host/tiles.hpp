#pragma once
// The host's own loops, once for every set of vector instructions: the files of host/tiles/ are
// included into a namespace for each. They contain no lambdas: a lambda does not inherit the
// instructions of the function around it.

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "dtm/backend/attended_rows.hpp"
#include "dtm/backend/fused_rows.hpp"
#include "dtm/backend/host/instructions.hpp"
#include "dtm/backend/local.hpp"
#include "dtm/core/element.hpp"

namespace dtm::tiles::portable {
#define DTM_TILES_BYTES 16
#include "dtm/backend/host/tiles/all.inc"
#undef DTM_TILES_BYTES
}  // namespace dtm::tiles::portable

#if DTM_TILES_X86
DTM_TILES_BEGIN(DTM_TILES_AVX2)
namespace dtm::tiles::avx2 {
#define DTM_TILES_BYTES 32
#include "dtm/backend/host/tiles/all.inc"
#undef DTM_TILES_BYTES
}  // namespace dtm::tiles::avx2
DTM_TILES_END

DTM_TILES_BEGIN(DTM_TILES_AVX512)
namespace dtm::tiles::avx512 {
#define DTM_TILES_BYTES 64
#include "dtm/backend/host/tiles/all.inc"
#undef DTM_TILES_BYTES
}  // namespace dtm::tiles::avx512
DTM_TILES_END
#endif

namespace dtm::tiles {

/// f(the loops of a set of instructions).
template <class F>
decltype(auto) with(instruction_set set, F&& f) {
#if DTM_TILES_X86
  if (set == instruction_set::avx512) return f(avx512::loops{});
  if (set == instruction_set::avx2) return f(avx2::loops{});
#endif
  return f(portable::loops{});
}

template <class T>
std::int64_t product_workspace(instruction_set set, std::int64_t k) {
  return with(set, [&](auto loops) { return loops.template product_workspace_size<T>(k); });
}
/// Whether a sum over k is of several blocks.
template <class T>
bool needs_wide_result(instruction_set set, std::int64_t k) {
  return with(set, [&](auto loops) { return loops.template terms<T>(k); }) < k;
}

}  // namespace dtm::tiles
