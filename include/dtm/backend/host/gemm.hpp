#pragma once
// Matrix products on the host, by the micro kernels of host/tiles.hpp: operands are packed in blocks,
// 16-bit ones widened on the way; sums are of accumulate_t in the order of k.
//
// A program of several units may define DTM_SEPARATE_PRODUCTS, and in one of its units, with the
// optimisation that it wants for them, instantiate what backend/host/products.hpp names; without the
// macro every unit has its own.

#include <cstdint>
#include <type_traits>

#include "dtm/backend/host/instructions.hpp"
#include "dtm/backend/local.hpp"
#include "dtm/core/device.hpp"
#include "dtm/core/scratch.hpp"

namespace dtm::local {

namespace detail {

/// In backend/host/products.hpp. Where Result is narrower than accumulate_t<T>, k is not longer than
/// the terms of one block.
template <class T, class Result>
void host_product(instruction_set set, gemm_shape const& shape, T const* left, T const* right,
                  Result* result, memory& storage);

}  // namespace detail

template <>
struct gemm_impl<host> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& shape, T const* left, T const* right,
                  Result* result) {
    static_assert(std::is_same_v<Result, T> || std::is_same_v<Result, accumulate_t<T>>,
                  "dtm gemm: the result is of the operands' type or of its accumulation type");
    detail::host_product(ctx.device().instructions(), shape, left, right, result, ctx.memory());
  }
};

}  // namespace dtm::local

#ifndef DTM_SEPARATE_PRODUCTS
#include "dtm/backend/host/products.hpp"
#endif
