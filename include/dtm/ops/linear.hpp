#pragma once
// Linear maps over the last dimension, y = x W^T (+ b), W [out, in] replicated, and their adjoints.
//
//   linear                   x [..., in]   -> y [..., out], placements kept (partial too: the map is linear)
//   add_bias                 refuses partial: the bias would be added once per rank
//   linear_backward_input    dy [..., out] -> dx [..., in]
//   add_weight_gradient      dW += dy^T x, accumulated in accumulate_t, partial on every axis (law L6)
//
// The last dimension must be whole on each rank. No communication. Source: torch.nn.Linear.

#include <cstdint>
#include <type_traits>

#include "dtm/backend/local.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/kernels/elementwise.hpp"

namespace dtm {

namespace contract {

template <class Axis, class Cotangent, class Input>
struct parameter_gradient_on {
  static_assert(dtm::detail::false_for<Axis, Cotangent, Input>,
                "dtm contract: on this axis the parameter gradient would not be a term of a sum: every rank would add "
                "the same; give the cotangent to one coordinate with share<Axis>; Axis, Cotangent and Input stand in "
                "the line that names parameter_gradient_on");
};

}  // namespace contract

namespace detail {

// A sum over positions is a term on an axis that shards them, or where the cotangent itself is a term.
template <class Cotangent, class Input>
inline constexpr bool sums_to_partial =
    (is_shard<Cotangent> && std::is_same_v<Cotangent, Input>) ||
    (std::is_same_v<Cotangent, partial<dtm::sum>> && is_replicate<Input>);

template <class Dy, class X>
struct parameter_gradient_check;
template <class Mesh, class SDy, class SX, class... PDy, class... PX>
struct parameter_gradient_check<layout<Mesh, SDy, PDy...>, layout<Mesh, SX, PX...>> {
  template <class Indices>
  struct per_axis;
  template <std::size_t... I>
  struct per_axis<std::index_sequence<I...>>
      : all_of<unless<sums_to_partial<PDy, PX>,
                      contract::parameter_gradient_on<typename Mesh::template axis_at<int(I)>, PDy, PX>>...> {};
  using check = per_axis<std::make_index_sequence<std::size_t(Mesh::rank)>>;
};

template <class X, std::int64_t Channels>
using last_replaced_t =
    with_layout_t<X, typename X::layout_type::template with_shape<
                         replace_dimension_t<typename X::shape_type, X::rank - 1, c<Channels>>>>;

template <class Weight>
inline constexpr std::int64_t out_channels = dimension_t<typename Weight::shape_type, 0>::static_extent;
template <class Weight>
inline constexpr std::int64_t in_channels = dimension_t<typename Weight::shape_type, 1>::static_extent;

template <class X>
std::int64_t rows_of(X const& x) {
  constexpr std::int64_t channels = dimension_t<typename X::shape_type, X::rank - 1>::static_extent;
  return x.size() / channels;
}

// The parameter of a map over [..., in] channels, as its operand sees it.
template <class Operation, class X, class Weight, std::int64_t Channels>
constexpr void check_linear_operand() {
  require_whole<Operation, X, X::rank - 1>();
  (void)sizeof(contract::dimension_at<at<Operation, X>, X::rank - 1, c<Channels>,
                                      dimension_t<typename X::shape_type, X::rank - 1>>);
  (void)sizeof(contract::element_type<at<Operation, X>, typename Weight::element_type, typename X::element_type>);
  static_assert(Weight::layout_type::all_replicate, "dtm linear: the weight is replicated on every axis");
}

}  // namespace detail

/// The gradient tensor of a replicated parameter: accumulated in accumulate_t, a pending sum on every axis.
template <class Parameter>
using parameter_gradient_t =
    tensor<accumulate_t<typename Parameter::element_type>,
           uniform_layout_t<typename Parameter::mesh_type, typename Parameter::shape_type, partial<sum>>,
           typename Parameter::device_type>;

template <class Context, any_tensor X, any_tensor Weight>
detail::last_replaced_t<X, detail::out_channels<Weight>> linear(Context& ctx, X const& x, Weight const& weight) {
  detail::check_linear_operand<operation::linear, X, Weight, detail::in_channels<Weight>>();
  using result_type = detail::last_replaced_t<X, detail::out_channels<Weight>>;
  global_extents<X::rank> global = x.global();
  global[X::rank - 1] = detail::out_channels<Weight>;
  result_type y(ctx, global);
  local::gemm_shape shape{1, detail::rows_of(x), detail::out_channels<Weight>, detail::in_channels<Weight>};
  shape.right_transposed = true;
  local::gemm(ctx, shape, x.data(), weight.data(), y.data());
  return y;
}

template <class Context, any_tensor Y, any_tensor Bias>
void add_bias(Context& ctx, Bias const& bias, Y& y) {
  require_complete<operation::bias, Y>();
  require_whole<operation::bias, Y, Y::rank - 1>();
  constexpr std::int64_t channels = dimension_t<typename Bias::shape_type, 0>::static_extent;
  (void)sizeof(contract::dimension_at<at<operation::bias, Y>, Y::rank - 1, c<channels>,
                                      dimension_t<typename Y::shape_type, Y::rank - 1>>);
  local::for_each(ctx, y.size(), kernels::add_bias<typename Y::element_type>{bias.data(), channels, y.data()});
}

template <class Context, any_tensor Dy, any_tensor Weight>
detail::last_replaced_t<Dy, detail::in_channels<Weight>> linear_backward_input(Context& ctx, Dy const& dy,
                                                                               Weight const& weight) {
  detail::check_linear_operand<operation::linear, Dy, Weight, detail::out_channels<Weight>>();
  using result_type = detail::last_replaced_t<Dy, detail::in_channels<Weight>>;
  global_extents<Dy::rank> global = dy.global();
  global[Dy::rank - 1] = detail::in_channels<Weight>;
  result_type dx(ctx, global);
  local::gemm(ctx, {1, detail::rows_of(dy), detail::in_channels<Weight>, detail::out_channels<Weight>}, dy.data(),
              weight.data(), dx.data());
  return dx;
}

/// dx += dy W: for an input that several maps read.
template <class Context, any_tensor Dy, any_tensor Weight, any_tensor Dx>
void add_linear_backward_input(Context& ctx, Dy const& dy, Weight const& weight, Dx& dx) {
  detail::check_linear_operand<operation::linear, Dy, Weight, detail::out_channels<Weight>>();
  require_same<operation::linear, detail::last_replaced_t<Dy, detail::in_channels<Weight>>, Dx>();
  local::gemm_shape shape{1, detail::rows_of(dy), detail::in_channels<Weight>, detail::out_channels<Weight>};
  shape.accumulate = true;
  local::gemm(ctx, shape, dy.data(), weight.data(), dx.data());
}

template <class Context, any_tensor Dy, any_tensor X, any_tensor Gradient>
void add_weight_gradient(Context& ctx, Dy const& dy, X const& x, Gradient& gradient) {
  (void)sizeof(typename detail::parameter_gradient_check<typename Dy::layout_type, typename X::layout_type>::check);
  static_assert(Gradient::layout_type::all_partial,
                "dtm linear: a weight gradient is a pending sum on every axis until synchronise (law L6)");
  local::gemm_shape shape{1, detail::out_channels<Gradient>, detail::in_channels<Gradient>, detail::rows_of(x)};
  shape.left_transposed = true;
  shape.accumulate = true;
  local::gemm(ctx, shape, dy.data(), x.data(), gradient.data());
}

template <class Context, any_tensor Dy, any_tensor Gradient>
void add_bias_gradient(Context& ctx, Dy const& dy, Gradient& gradient) {
  static_assert(Gradient::layout_type::all_partial,
                "dtm linear: a bias gradient is a pending sum on every axis until synchronise (law L6)");
  (void)sizeof(typename detail::parameter_gradient_check<
               typename Dy::layout_type, typename detail::cotangent_layout<typename Dy::layout_type>::type>::check);
  constexpr std::int64_t channels = dimension_t<typename Gradient::shape_type, 0>::static_extent;
  local::add_column_sum(ctx, detail::rows_of(dy), channels, dy.data(), gradient.data());
}

}  // namespace dtm
