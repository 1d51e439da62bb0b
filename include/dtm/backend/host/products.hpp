#pragma once
// The products and fused operations of backend/host/gemm.hpp and fused_rows.hpp. The unit that has
// them where DTM_SEPARATE_PRODUCTS is defined:
//
//   #include "dtm/backend/host/products.hpp"
//   DTM_INSTANTIATE_PRODUCTS

#include "dtm/backend/host/fused_attention.hpp"
#include "dtm/backend/host/fused_rows.hpp"
#include "dtm/backend/host/gemm.hpp"
#include "dtm/backend/host/tiles.hpp"
#include "dtm/backend/host/workspace.hpp"

#define DTM_INSTANTIATE_PRODUCT(T, Result)                                              \
  template void dtm::local::detail::host_product<T, Result>(                            \
      dtm::instruction_set, dtm::local::gemm_shape const&, T const*, T const*, Result*, \
      dtm::memory&);
#define DTM_INSTANTIATE_FUSED(operation)                               \
  template void dtm::local::detail::host_fused<dtm::local::operation>( \
      dtm::instruction_set, dtm::local::operation const&, dtm::memory&);
#define DTM_INSTANTIATE_ATTENTION(T, Result)                                                    \
  template void dtm::local::detail::host_fused<dtm::local::attention_rows<T, Result>>(          \
      dtm::instruction_set, dtm::local::attention_rows<T, Result> const&, dtm::memory&);        \
  template void dtm::local::detail::host_fused<dtm::local::attention_rows_backward<T, Result>>( \
      dtm::instruction_set, dtm::local::attention_rows_backward<T, Result> const&, dtm::memory&);
#define DTM_INSTANTIATE_PRODUCTS_OF(T)               \
  DTM_INSTANTIATE_PRODUCT(T, T)                      \
  DTM_INSTANTIATE_FUSED(gated_to_planes<T>)          \
  DTM_INSTANTIATE_FUSED(gated_to_planes_backward<T>) \
  DTM_INSTANTIATE_FUSED(gated_output<T>)             \
  DTM_INSTANTIATE_FUSED(gated_output_backward<T>)    \
  DTM_INSTANTIATE_FUSED(swiglu_rows<T>)              \
  DTM_INSTANTIATE_FUSED(swiglu_rows_backward<T>)     \
  DTM_INSTANTIATE_ATTENTION(T, T)                    \
  DTM_INSTANTIATE_FUSED(norm_to_planes<T>)           \
  DTM_INSTANTIATE_FUSED(norm_to_planes_backward<T>)  \
  DTM_INSTANTIATE_FUSED(attended_rows<T>)            \
  DTM_INSTANTIATE_FUSED(attended_rows_backward<T>)
#define DTM_INSTANTIATE_PRODUCTS            \
  DTM_INSTANTIATE_PRODUCTS_OF(float)        \
  DTM_INSTANTIATE_PRODUCTS_OF(double)       \
  DTM_INSTANTIATE_PRODUCTS_OF(dtm::bf16)    \
  DTM_INSTANTIATE_PRODUCT(dtm::bf16, float) \
  DTM_INSTANTIATE_ATTENTION(dtm::bf16, float)

namespace dtm::local::detail {

template <class T, class Result>
void host_product(instruction_set set, gemm_shape const& shape, T const* left, T const* right,
                  Result* result, memory& storage) {
  product_memory<T, Result> space(set, shape, storage);
  auto const multiply_to = [&](auto* to) {
    tiles::with(
        set, [&](auto loops) { loops.multiply(shape, left, right, to, space.workspace.data()); });
  };
  if constexpr (!std::is_same_v<Result, accumulate_t<T>>) {
    if (auto* const wide = space.wide.data(); wide != nullptr) {
      std::int64_t const count = space.wide.size();
      if (shape.accumulate)
        for (std::int64_t i = 0; i < count; ++i) wide[i] = accumulate_t<T>(result[i]);
      multiply_to(wide);
      for (std::int64_t i = 0; i < count; ++i) result[i] = Result(wide[i]);
      return;
    }
  }
  multiply_to(result);
}

template <class Operation>
void host_fused(instruction_set set, Operation const& operation, memory& storage) {
  auto workspace = fused_memory(set, operation, storage);
  tiles::with(set, [&](auto loops) { loops.run(operation, workspace.data()); });
}

}  // namespace dtm::local::detail
