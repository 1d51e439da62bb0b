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
  using A = accumulate_t<T>;
  if constexpr (!std::is_same_v<Result, A>) {
    if (tiles::needs_wide_result<A>(set, shape.k)) {  // sums between blocks are not rounded
      std::int64_t const count = shape.batch * shape.m * shape.n;
      scratch<A> wide(storage, count);
      if (shape.accumulate)
        for (std::int64_t i = 0; i < count; ++i) wide.data()[i] = A(result[i]);
      host_product(set, shape, left, right, wide.data(), storage);
      for (std::int64_t i = 0; i < count; ++i) result[i] = Result(wide.data()[i]);
      return;
    }
  }
  scratch<A> workspace(storage, tiles::product_workspace<A>(set, shape.k));
  tiles::with(set,
              [&](auto loops) { loops.multiply(shape, left, right, result, workspace.data()); });
}

/// The type in which an operation sums.
template <template <class> class Operation, class T>
accumulate_t<T> summed_in(Operation<T> const&);
template <template <class, class> class Operation, class T, class Result>
accumulate_t<T> summed_in(Operation<T, Result> const&);

template <class Operation>
void host_fused(instruction_set set, Operation const& operation, memory& storage) {
  using A = decltype(summed_in(operation));
  tiles::with(set, [&](auto loops) {
    scratch<A> workspace(storage, loops.fused_workspace_size(operation));
    loops.run(operation, workspace.data());
  });
}

}  // namespace dtm::local::detail
