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
                "dtm contract: on this axis the parameter gradient would not be a term of a sum: "
                "every rank would add the same; give the cotangent to one coordinate with "
                "share<Axis>; Axis, Cotangent and Input stand in the line that names "
                "parameter_gradient_on");
};

template <class Operation>
struct parameter_is_replicated {
  static_assert(dtm::detail::false_for<Operation>,
                "dtm contract: a parameter is replicated on every axis; Operation stands in the "
                "line that names parameter_is_replicated");
};

template <class Operation>
struct parameter_gradient_is_pending {
  static_assert(dtm::detail::false_for<Operation>,
                "dtm contract: a parameter gradient is a pending sum on every axis until "
                "synchronise (law L6); Operation stands in the line that names "
                "parameter_gradient_is_pending");
};

}  // namespace contract

namespace detail {

// A sum over positions is a term on an axis that shards them, or where the cotangent itself is a
// term.
template <class Cotangent, class Input>
inline constexpr bool sums_to_partial = (is_shard<Cotangent> && std::is_same_v<Cotangent, Input>) ||
                                        (std::is_same_v<Cotangent, partial<dtm::sum>> &&
                                         is_replicate<Input>);

template <class Dy, class X>
struct parameter_gradient_check;
template <class Mesh, class SDy, class SX, class... PDy, class... PX>
struct parameter_gradient_check<layout<Mesh, SDy, PDy...>, layout<Mesh, SX, PX...>> {
  template <class Indices>
  struct per_axis;
  template <std::size_t... I>
  struct per_axis<std::index_sequence<I...>> {
    using check = first_error<unless<
        sums_to_partial<PDy, PX>,
        contract::parameter_gradient_on<typename Mesh::template axis_at<int(I)>, PDy, PX>>...>;
  };
  using check = typename per_axis<std::make_index_sequence<std::size_t(Mesh::rank)>>::check;
};

template <class X, std::int64_t Channels>
using last_replaced_t =
    with_layout_t<X, typename X::layout_type::template with_shape<
                         replace_dimension_t<typename X::shape_type, X::rank - 1, c<Channels>>>>;

template <class Weight>
inline constexpr std::int64_t out_channels =
    dimension_t<typename Weight::shape_type, 0>::static_extent;
template <class Weight>
inline constexpr std::int64_t in_channels =
    dimension_t<typename Weight::shape_type, 1>::static_extent;

template <class X>
std::int64_t rows_of(X const& x) {
  constexpr std::int64_t channels = dimension_t<typename X::shape_type, X::rank - 1>::static_extent;
  return x.size() / channels;
}

// The last dimension, as a parameter wants it.
template <class Operation, class X, std::int64_t Channels>
using channels_check =
    first_error<whole_check<Operation, X, X::rank - 1>,
                dimension_check<at<Operation, operand::weight>, X::rank - 1, c<Channels>,
                                dimension_t<typename X::shape_type, X::rank - 1>>>;

// Both operands of a weight gradient stand at the same positions.
template <class Dy, class X>
using positions_check = first_error<
    unless<Dy::rank == X::rank,
           contract::rank<at<operation::linear, operand::right>, Dy::rank, X::rank>>,
    unless<std::is_same_v<erase_dimension_t<Dy, Dy::rank - 1>, erase_dimension_t<X, X::rank - 1>>,
           contract::differ::dimensions<at<operation::linear, operand::right>,
                                        erase_dimension_t<Dy, Dy::rank - 1>,
                                        erase_dimension_t<X, X::rank - 1>,
                                        std::make_index_sequence<std::size_t(Dy::rank) - 1>>>>;

// The operand of a map over [..., in] channels, as its parameter sees it.
template <class Operation, class X, class Weight, std::int64_t Channels>
using map_check = first_error<
    linear_check<Operation, X>, channels_check<Operation, X, Channels>,
    element_check<at<Operation, operand::weight>, typename Weight::element_type,
                  typename X::element_type>,
    unless<Weight::layout_type::all_replicate, contract::parameter_is_replicated<Operation>>>;

// A gradient is accumulated in accumulate_t and pending on every axis; the operands sum to a term
// on each of them.
template <class Dy, class X, class Gradient>
using gradient_check = first_error<
    unless<Gradient::layout_type::all_partial,
           contract::parameter_gradient_is_pending<operation::linear>>,
    typename parameter_gradient_check<typename Dy::layout_type, typename X::layout_type>::check,
    element_check<at<operation::linear, operand::weight>, accumulate_t<typename Dy::element_type>,
                  typename Gradient::element_type>>;

}  // namespace detail

/// The gradient tensor of a replicated parameter: accumulated in accumulate_t, a pending sum on
/// every axis.
template <class Parameter>
using parameter_gradient_t = tensor<
    accumulate_t<typename Parameter::element_type>,
    uniform_layout_t<typename Parameter::mesh_type, typename Parameter::shape_type, partial<sum>>,
    typename Parameter::device_type>;

template <class Context, any_tensor X, any_tensor Weight>
detail::last_replaced_t<X, detail::out_channels<Weight>> linear(Context& ctx, X const& x,
                                                                Weight const& weight) {
  using check = detail::map_check<operation::linear, X, Weight, detail::in_channels<Weight>>;
  (void)sizeof(check);
  using result_type = detail::last_replaced_t<X, detail::out_channels<Weight>>;
  global_extents<X::rank> global = x.global();
  global[X::rank - 1] = detail::out_channels<Weight>;
  result_type y(ctx, global);
  local::gemm_shape shape{1, detail::rows_of(x), detail::out_channels<Weight>,
                          detail::in_channels<Weight>};
  shape.right_transposed = true;
  if constexpr (detail::holds<check>) local::gemm(ctx, shape, x.data(), weight.data(), y.data());
  return y;
}

template <class Context, any_tensor Y, any_tensor Bias>
void add_bias(Context& ctx, Bias const& bias, Y& y) {
  constexpr std::int64_t channels = dimension_t<typename Bias::shape_type, 0>::static_extent;
  using check = detail::first_error<detail::complete_check<operation::bias, Y>,
                                    detail::map_check<operation::bias, Y, Bias, channels>>;
  (void)sizeof(check);
  if constexpr (detail::holds<check>)
    local::for_each(ctx, y.size(),
                    kernels::add_bias<typename Y::element_type>{bias.data(), channels, y.data()});
}

template <class Context, any_tensor Dy, any_tensor Weight>
detail::last_replaced_t<Dy, detail::in_channels<Weight>> linear_backward_input(
    Context& ctx, Dy const& dy, Weight const& weight) {
  using check = detail::map_check<operation::linear, Dy, Weight, detail::out_channels<Weight>>;
  (void)sizeof(check);
  using result_type = detail::last_replaced_t<Dy, detail::in_channels<Weight>>;
  global_extents<Dy::rank> global = dy.global();
  global[Dy::rank - 1] = detail::in_channels<Weight>;
  result_type dx(ctx, global);
  if constexpr (detail::holds<check>)
    local::gemm(ctx,
                {1, detail::rows_of(dy), detail::in_channels<Weight>, detail::out_channels<Weight>},
                dy.data(), weight.data(), dx.data());
  return dx;
}

/// dx += dy W: for an input that several maps read.
template <class Context, any_tensor Dy, any_tensor Weight, any_tensor Dx>
void add_linear_backward_input(Context& ctx, Dy const& dy, Weight const& weight, Dx& dx) {
  using check = detail::first_error<
      detail::map_check<operation::linear, Dy, Weight, detail::out_channels<Weight>>,
      detail::same_check<at<operation::linear, operand::right>,
                         detail::last_replaced_t<Dy, detail::in_channels<Weight>>, Dx>>;
  (void)sizeof(check);
  local::gemm_shape shape{1, detail::rows_of(dy), detail::in_channels<Weight>,
                          detail::out_channels<Weight>};
  shape.accumulate = true;
  if constexpr (detail::holds<check>) local::gemm(ctx, shape, dy.data(), weight.data(), dx.data());
}

template <class Context, any_tensor Dy, any_tensor X, any_tensor Gradient>
void add_weight_gradient(Context& ctx, Dy const& dy, X const& x, Gradient& gradient) {
  using check = detail::first_error<
      detail::gradient_check<Dy, X, Gradient>,
      detail::channels_check<operation::linear, Dy, detail::out_channels<Gradient>>,
      detail::channels_check<operation::linear, X, detail::in_channels<Gradient>>,
      detail::positions_check<typename Dy::shape_type, typename X::shape_type>,
      detail::element_check<at<operation::linear, operand::right>, typename Dy::element_type,
                            typename X::element_type>>;
  (void)sizeof(check);
  local::gemm_shape shape{1, detail::out_channels<Gradient>, detail::in_channels<Gradient>,
                          detail::rows_of(x)};
  shape.left_transposed = true;
  shape.accumulate = true;
  if constexpr (detail::holds<check>) local::gemm(ctx, shape, dy.data(), x.data(), gradient.data());
}

template <class Context, any_tensor Dy, any_tensor Gradient>
void add_bias_gradient(Context& ctx, Dy const& dy, Gradient& gradient) {
  constexpr std::int64_t channels = dimension_t<typename Gradient::shape_type, 0>::static_extent;
  using check = detail::first_error<detail::gradient_check<Dy, cotangent_t<Dy>, Gradient>,
                                    detail::channels_check<operation::bias, Dy, channels>>;
  (void)sizeof(check);
  if constexpr (detail::holds<check>)
    local::add_column_sum(ctx, detail::rows_of(dy), channels, dy.data(), gradient.data());
}

}  // namespace dtm
