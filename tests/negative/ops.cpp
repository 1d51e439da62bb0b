// Laws L3, L5, L6, L11 in the typed operations: what the mathematics does not allow is one error.
#include "dtm/ops/einsum.hpp"
#include "dtm/ops/layer_norm.hpp"
#include "dtm/ops/outer.hpp"
#include "negative/stand_in.hpp"

using context_type = stand_in<line>;
template <class Placement, class T = float>
using x_type = tensor<T, layout<line, shape<batch, tokens, c<8>>, Placement>>;
template <class... D>
using parameter = on_line<shape<D...>, replicate>;
template <class... D>
using gradient = on_line<shape<D...>, partial<sum>>;
using weight_type = parameter<c<6>, c<8>>;

/// Any value of a type: these programs are never run.
template <class T>
T& any();

#if DTM_CASE == 0
void program(context_type& ctx) {
  auto const& x = any<x_type<shard<1>>>();
  auto y = linear(ctx, x, any<weight_type>());
  add_bias(ctx, any<parameter<c<6>>>(), y);
  gate(ctx, y, y);
  add_into(ctx, x, any<x_type<shard<1>>>());
  add_into(ctx, any<x_type<partial<sum>>>(), any<x_type<partial<sum>>>());
  linear(ctx, any<x_type<partial<sum>>>(), any<weight_type>());
  auto const normed = layer_norm_forward(ctx, x, any<parameter<c<8>>>(), any<parameter<c<8>>>());
  layer_norm_backward(ctx, x, x, normed.statistics, any<parameter<c<8>>>(), any<gradient<c<8>>>(),
                      any<gradient<c<8>>>());
  auto const dx = linear_backward_input(ctx, y, any<weight_type>());
  add_weight_gradient(ctx, y, dx, any<gradient<c<6>, c<8>>>());
  add_weight_gradient(ctx, any<x_type<partial<sum>>>(), any<x_type<replicate>>(),
                      any<gradient<c<8>, c<8>>>());
  add_bias_gradient(ctx, y, any<gradient<c<6>>>());
  einsum<"bik,bjk->bij">(ctx, x, any<x_type<replicate>>());
  outer_sum(ctx, any<x_type<shard<1>>>(), any<x_type<replicate>>());
  sum_over<1>(ctx, x);
  permute<0, 2, 1>(ctx, x);
  swap_dimensions<0, 1>(ctx, x);
  merge_last(ctx, split_last<2, 4>(ctx, x.clone()));
  cast<double>(ctx, x);
}
#endif

// case 1: error: static.assert.*dtm contract: the operand is a pending reduction
// case 1: operation_on_partial<.*operation::gate, .*cp0, .*partial<.*sum ?>
#if DTM_CASE == 1
void program(context_type& ctx) {
  gate(ctx, any<x_type<partial<sum>>>(), any<x_type<partial<sum>>>());
}
#endif

// case 2: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 2: placement_on<.*operation::gate, .*cp0, .*shard<1>, .*replicate
#if DTM_CASE == 2
void program(context_type& ctx) {
  gate(ctx, any<x_type<shard<1>>>(), any<x_type<replicate>>());
}
#endif

// case 3: error: static.assert.*dtm contract: the operand is a pending reduction
// case 3: operation_on_partial<.*operation::bias, .*cp0, .*partial<.*sum ?>
#if DTM_CASE == 3
void program(context_type& ctx) {
  add_bias(ctx, any<parameter<c<8>>>(), any<x_type<partial<sum>>>());
}
#endif

// case 4: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 4: dimension_is_sharded<.*operation::bias, .*cp0, 2>
#if DTM_CASE == 4
void program(context_type& ctx) {
  add_bias(ctx, any<parameter<c<8>>>(), any<x_type<shard<2>>>());
}
#endif

// case 5: error: static.assert.*dtm contract: a dimension differs
// case 5: dimension_at<.*operation::bias, .*, 2, .*c<6>, .*c<8>
#if DTM_CASE == 5
void program(context_type& ctx) {
  add_bias(ctx, any<parameter<c<6>>>(), any<x_type<shard<1>>>());
}
#endif

// case 6: error: static.assert.*dtm contract: the element type differs
// case 6: element_type<.*operation::bias, .*, float, double>
#if DTM_CASE == 6
void program(context_type& ctx) {
  add_bias(ctx, any<parameter<c<8>>>(), any<x_type<shard<1>, double>>());
}
#endif

// case 7: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 7: dimension_is_sharded<.*operation::linear, .*cp0, 2>
#if DTM_CASE == 7
void program(context_type& ctx) {
  linear(ctx, any<x_type<shard<2>>>(), any<weight_type>());
}
#endif

// case 8: error: static.assert.*dtm contract: a dimension differs
// case 8: dimension_at<.*operation::linear, .*, 2, .*c<4>, .*c<8>
#if DTM_CASE == 8
void program(context_type& ctx) {
  linear(ctx, any<x_type<shard<1>>>(), any<parameter<c<6>, c<4>>>());
}
#endif

// case 9: error: static.assert.*dtm contract: the element type differs
// case 9: element_type<.*operation::linear, .*, float, .*bf16>
#if DTM_CASE == 9
void program(context_type& ctx) {
  linear(ctx, any<x_type<shard<1>, bf16>>(), any<weight_type>());
}
#endif

// case 10: error: static.assert.*dtm contract: a parameter is replicated on every axis
#if DTM_CASE == 10
void program(context_type& ctx) {
  linear(ctx, any<x_type<shard<1>>>(), any<on_line<shape<c<6>, c<8>>, shard<0>>>());
}
#endif

// case 11: error: static.assert.*dtm contract: the operand is a pending reduction
// case 11: operation_on_partial<.*operation::linear, .*cp0, .*partial<.*max ?>
#if DTM_CASE == 11
void program(context_type& ctx) {
  linear(ctx, any<x_type<partial<max>>>(), any<weight_type>());
}
#endif

// case 12: error: static.assert.*dtm contract: the operand is a pending reduction
// case 12: operation_on_partial<.*operation::layer_norm, .*cp0, .*partial<.*sum ?>
#if DTM_CASE == 12
void program(context_type& ctx) {
  layer_norm_forward(ctx, any<x_type<partial<sum>>>(), any<parameter<c<8>>>(),
                     any<parameter<c<8>>>());
}
#endif

// case 13: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 13: dimension_is_sharded<.*operation::layer_norm, .*cp0, 2>
#if DTM_CASE == 13
void program(context_type& ctx) {
  layer_norm_forward(ctx, any<x_type<shard<2>>>(), any<parameter<c<8>>>(), any<parameter<c<8>>>());
}
#endif

// case 14: error: static.assert.*dtm contract: a dimension differs
// case 14: dimension_at<.*operation::layer_norm, .*, 2, .*c<6>, .*c<8>
#if DTM_CASE == 14
void program(context_type& ctx) {
  layer_norm_forward(ctx, any<x_type<shard<1>>>(), any<parameter<c<6>>>(), any<parameter<c<6>>>());
}
#endif

// case 15: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 15: placement_on<.*operation::layer_norm, .*cp0, .*partial<.*sum ?>, .*replicate
#if DTM_CASE == 15
void program(context_type& ctx) {
  auto& x = any<x_type<replicate>>();
  layer_norm_backward(ctx, x, x, any<layer_norm_statistics<x_type<replicate>>>(),
                      any<parameter<c<8>>>(), any<gradient<c<8>>>(), any<gradient<c<8>>>());
}
#endif

// case 16: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 16: placement_on<.*operation::add, .*cp0, .*replicate, .*partial<.*sum ?>
#if DTM_CASE == 16
void program(context_type& ctx) {
  add_into(ctx, any<x_type<partial<sum>>>(), any<x_type<replicate>>());
}
#endif

// case 17: error: static.assert.*dtm contract: the element type differs
// case 17: element_type<.*operation::add, .*, float, double>
#if DTM_CASE == 17
void program(context_type& ctx) {
  add_into(ctx, any<x_type<shard<1>, double>>(), any<x_type<shard<1>>>());
}
#endif

// case 18: error: static.assert.*dtm contract: the operand is a pending reduction
// case 18: operation_on_partial<.*operation::add, .*cp0, .*partial<.*max ?>
#if DTM_CASE == 18
void program(context_type& ctx) {
  add_into(ctx, any<x_type<partial<max>>>(), any<x_type<partial<max>>>());
}
#endif

// case 19: error: static.assert.*dtm contract: the operand is a pending reduction
// case 19: operation_on_partial<.*operation::sum, .*cp0, .*partial<.*max ?>
#if DTM_CASE == 19
void program(context_type& ctx) {
  sum_over<1>(ctx, any<x_type<partial<max>>>());
}
#endif

// case 20: error: static.assert.*dtm shape: the shape has no such position
// case 20: position_outside<.*, 3>
#if DTM_CASE == 20
void program(context_type& ctx) {
  sum_over<3>(ctx, any<x_type<shard<1>>>());
}
#endif

// case 21: error: static.assert.*dtm contract: the operands' placements on this axis
// case 21: operands_disagree<.*contraction<.*, .*cp0, .*shard<1>, .*shard<1>
#if DTM_CASE == 21
void program(context_type& ctx) {
  einsum<"bik,bjk->bij">(ctx, any<x_type<shard<1>>>(), any<x_type<shard<1>>>());
}
#endif

// case 22: error: static.assert.*dtm contract: the element type differs
// case 22: element_type<.*contraction<.*, float, double>
#if DTM_CASE == 22
void program(context_type& ctx) {
  einsum<"bik,bjk->bij">(ctx, any<x_type<shard<1>>>(), any<x_type<replicate, double>>());
}
#endif

// case 23: error: static.assert.*dtm contract: the labels are not in a supported order
// case 23: contraction_order<
#if DTM_CASE == 23
void program(context_type& ctx) {
  einsum<"bik,bjk->ijb">(ctx, any<x_type<shard<1>>>(), any<x_type<replicate>>());
}
#endif

// case 24: error: static.assert.*dtm contract: a contraction is written
// case 24: contraction_formula<
#if DTM_CASE == 24
void program(context_type& ctx) {
  einsum<"bik,bjk">(ctx, any<x_type<shard<1>>>(), any<x_type<replicate>>());
}
#endif

// case 25: error: static.assert.*dtm contract: a contraction has one label per dimension
// case 25: labels_of_operand<.*, 3, 2>
#if DTM_CASE == 25
void program(context_type& ctx) {
  einsum<"ik,bjk->bij">(ctx, any<x_type<shard<1>>>(), any<x_type<replicate>>());
}
#endif

// case 26: error: static.assert.*dtm contract: on this axis the parameter gradient would
// case 26: parameter_gradient_on<.*cp0, .*replicate, .*replicate
#if DTM_CASE == 26
void program(context_type& ctx) {
  auto& x = any<x_type<replicate>>();
  add_weight_gradient(ctx, x, x, any<gradient<c<8>, c<8>>>());
}
#endif

// case 27: error: static.assert.*dtm contract: on this axis the parameter gradient would
// case 27: parameter_gradient_on<.*cp0, .*shard<1>, .*replicate
#if DTM_CASE == 27
void program(context_type& ctx) {
  add_weight_gradient(ctx, any<x_type<shard<1>>>(), any<x_type<replicate>>(),
                      any<gradient<c<8>, c<8>>>());
}
#endif

// case 28: error: static.assert.*dtm contract: on this axis the parameter gradient would
// case 28: parameter_gradient_on<.*cp0, .*replicate
#if DTM_CASE == 28
void program(context_type& ctx) {
  add_bias_gradient(ctx, any<x_type<replicate>>(), any<gradient<c<8>>>());
}
#endif

// case 29: error: static.assert.*dtm contract: a parameter gradient is a pending sum
#if DTM_CASE == 29
void program(context_type& ctx) {
  auto& x = any<x_type<shard<1>>>();
  add_weight_gradient(ctx, x, x, any<parameter<c<8>, c<8>>>());
}
#endif

// case 30: error: static.assert.*dtm contract: a dimension differs
// case 30: dimension_at<.*operation::linear, .*, 2, .*c<6>, .*c<8>
#if DTM_CASE == 30
void program(context_type& ctx) {
  auto& x = any<x_type<shard<1>>>();
  add_weight_gradient(ctx, x, x, any<gradient<c<6>, c<8>>>());
}
#endif

// case 31: error: static.assert.*dtm contract: a parameter gradient is a pending sum
#if DTM_CASE == 31
void program(context_type& ctx) {
  add_bias_gradient(ctx, any<x_type<shard<1>>>(), any<parameter<c<8>>>());
}
#endif

// case 32: error: static.assert.*dtm contract: the operands' placements on this axis
// case 32: operands_disagree<.*operation::outer_sum, .*cp0, .*shard<1>, .*shard<1>
#if DTM_CASE == 32
void program(context_type& ctx) {
  outer_sum(ctx, any<x_type<shard<1>>>(), any<x_type<shard<1>>>());
}
#endif

// case 33: error: static.assert.*dtm contract: the operands' placements on this axis
// case 33: operands_disagree<.*operation::outer_sum, .*cp0, .*partial<.*sum ?>, .*replicate
#if DTM_CASE == 33
void program(context_type& ctx) {
  outer_sum(ctx, any<x_type<partial<sum>>>(), any<x_type<replicate>>());
}
#endif

// case 34: error: static.assert.*dtm split_last: the last dimension is not
#if DTM_CASE == 34
void program(context_type& ctx) {
  split_last<3, 4>(ctx, any<x_type<shard<1>>>().clone());
}
#endif

// case 35: error: static.assert.*dtm merge_last: pass std::move
#if DTM_CASE == 35
void program(context_type& ctx) {
  merge_last(ctx, any<on_line<shape<tokens, c<2>, c<4>>, shard<0>>>());
}
#endif

// case 36: error: static.assert.*dtm permute:
#if DTM_CASE == 36
void program(context_type& ctx) {
  permute<0, 1>(ctx, any<x_type<shard<1>>>());
}
#endif

// case 37: error: static.assert.*dtm permute:
#if DTM_CASE == 37
void program(context_type& ctx) {
  permute<0, 1, 1>(ctx, any<x_type<shard<1>>>());
}
#endif

// case 38: error: static.assert.*dtm permute:
#if DTM_CASE == 38
void program(context_type& ctx) {
  permute<0, 1, 3>(ctx, any<x_type<shard<1>>>());
}
#endif

// case 39: error: static.assert.*dtm contract: the element type differs
// case 39: element_type<.*operation::outer_sum, .*, float, .*bf16>
#if DTM_CASE == 39
void program(context_type& ctx) {
  outer_sum(ctx, any<x_type<shard<1>>>(), any<x_type<replicate, bf16>>());
}
#endif

// case 40: error: static.assert.*dtm merge_last: the last two dimensions are not both channels
#if DTM_CASE == 40
void program(context_type& ctx) {
  merge_last(ctx, any<x_type<replicate>>().clone());
}
#endif

// case 41: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 41: dimension_is_sharded<.*operation::permute, .*cp0, 1>
#if DTM_CASE == 41
void program(context_type& ctx) {
  merge_last(ctx, any<on_line<shape<tokens, c<2>, c<4>>, shard<1>>>().clone());
}
#endif

// case 42: error: static.assert.*dtm contract: a dimension differs
// case 42: dimension_at<.*operation::linear, .*operand::right>, 1, .*tokens, .*atoms>
#if DTM_CASE == 42
void program(context_type& ctx) {
  using other = on_line<shape<batch, atoms, c<8>>, shard<1>>;
  add_weight_gradient(ctx, any<x_type<shard<1>>>(), any<other>(), any<gradient<c<8>, c<8>>>());
}
#endif

// case 43: error: static.assert.*dtm contract: the element type differs
// case 43: element_type<.*operation::linear, .*operand::weight>, float, .*bf16>
#if DTM_CASE == 43
void program(context_type& ctx) {
  auto& x = any<x_type<shard<1>, bf16>>();
  add_weight_gradient(ctx, x, x, any<with_element_t<gradient<c<8>, c<8>>, bf16>>());
}
#endif
