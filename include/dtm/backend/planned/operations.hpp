#pragma once
// Local operations of planned devices: none of the work, all of the scratch. Where a device runs kernels
// the operations of backend/device/ serve as they are, since a planned launch does nothing; the host's are
// here, and each device's products.

#include <cstdint>

#include "dtm/backend/device/boxes.hpp"
#include "dtm/backend/device/operations.hpp"
#include "dtm/backend/attended_rows.hpp"
#include "dtm/backend/fused_rows.hpp"
#include "dtm/backend/host/workspace.hpp"
#include "dtm/backend/planned/backend.hpp"

namespace dtm::local {

template <>
struct for_each_impl<planned<host>> {
  template <class Context, class Kernel>
  static void run(Context&, std::int64_t, Kernel const&) {}
};

template <>
struct layer_norm_impl<planned<host>> {
  template <class... Arguments>
  static void forward(Arguments const&...) {}
  template <class... Arguments>
  static void apply(Arguments const&...) {}
  template <class... Arguments>
  static void backward(Arguments const&...) {}
};

template <>
struct column_sum_impl<planned<host>> {
  template <class... Arguments>
  static void run(Arguments const&...) {}
};
template <>
struct square_sum_impl<planned<host>> : column_sum_impl<planned<host>> {};
template <>
struct selected_columns_impl<planned<host>> : column_sum_impl<planned<host>> {};

template <>
struct fused_rows<planned<host>> {
  static constexpr bool available = true;
  template <class Context, class Operation>
  static void run(Context& ctx, Operation const& operation) {
    (void)detail::fused_memory(ctx.device().chosen().instructions, operation, ctx.memory());
  }
};

template <>
struct fused_attention<planned<host>> : fused_rows<planned<host>> {};
template <>
struct fused_attended_rows<planned<host>> : fused_rows<planned<host>> {};

template <>
struct gemm_impl<planned<host>> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& shape, T const*, T const*, Result*) {
    (void)detail::product_memory<T, Result>(ctx.device().chosen().instructions, shape,
                                            ctx.memory());
  }
};

template <>
struct gemm_impl<planned<emulated>> : gemm_impl<emulated> {};

template <>
struct gemm_impl<planned<cuda>> {
  template <class Context, class T, class Result>
  static void run(Context& ctx, gemm_shape const& shape, T const* left, T const* right,
                  Result* result) {
    if (ctx.device().chosen().own_products) device_product(ctx, shape, left, right, result);
  }
};

}  // namespace dtm::local

namespace dtm::comm {

template <>
struct box_copy<planned<host>> {
  template <class... Arguments>
  static void pack(Arguments const&...) {}
  template <class... Arguments>
  static void unpack(Arguments const&...) {}
  template <class... Arguments>
  static void unpack_add(Arguments const&...) {}
};

}  // namespace dtm::comm
