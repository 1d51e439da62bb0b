// Law L3: non-linear maps and "+ constant" refuse a pending reduction, operands are placed alike,
// and an operation that needs a whole dimension refuses a sharded one.
#include "negative/vocabulary.hpp"

template <class Placement>
using x_type = on_line<shape<tokens, c<8>>, Placement>;

#if DTM_CASE == 0
void program() {
  require_complete<operation::sigmoid, x_type<shard<0>>>();
  require_complete<operation::bias, x_type<replicate>>();
  require_whole<operation::layer_norm, x_type<shard<0>>, 1>();
  require_same<operation::add, x_type<partial<sum>>, x_type<partial<sum>>>();
}
static_assert(std::is_same_v<sum_layout_t<x_type<shard<0>>::layout_type, 0>,
                             layout<line, shape<c<8>>, partial<sum>>>);
#endif

// case 1: error: static.assert.*dtm contract: the operand is a pending reduction
// case 1: operation_on_partial<.*operation::sigmoid, .*cp0, .*partial<.*sum
#if DTM_CASE == 1
void program() {
  require_complete<operation::sigmoid, x_type<partial<sum>>>();
}
#endif

// case 2: error: static.assert.*dtm contract: the operand is a pending reduction
// case 2: operation_on_partial<.*operation::silu, .*cp0, .*partial<.*sum
#if DTM_CASE == 2
void program() {
  require_complete<operation::silu, x_type<partial<sum>>>();
}
#endif

// case 3: error: static.assert.*dtm contract: the operand is a pending reduction
// case 3: operation_on_partial<.*operation::gate, .*cp0, .*partial<.*sum
#if DTM_CASE == 3
void program() {
  require_complete<operation::gate, x_type<partial<sum>>>();
}
#endif

// case 4: error: static.assert.*dtm contract: the operand is a pending reduction
// case 4: operation_on_partial<.*operation::add_constant, .*cp0, .*partial<.*sum
#if DTM_CASE == 4
void program() {
  require_complete<operation::add_constant, x_type<partial<sum>>>();
}
#endif

// case 5: error: static.assert.*dtm contract: the operand is a pending reduction
// case 5: operation_on_partial<.*operation::bias, .*cp0, .*partial<.*sum
#if DTM_CASE == 5
void program() {
  require_complete<operation::bias, x_type<partial<sum>>>();
}
#endif

// case 6: error: static.assert.*dtm contract: the operand is a pending reduction
// case 6: operation_on_partial<.*operation::layer_norm, .*cp0, .*partial<.*sum
#if DTM_CASE == 6
void program() {
  require_complete<operation::layer_norm, x_type<partial<sum>>>();
}
#endif

// case 7: error: static.assert.*dtm contract: the operand is a pending reduction
// case 7: operation_on_partial<.*operation::log_softmax, .*cp0, .*partial<.*sum
#if DTM_CASE == 7
void program() {
  require_complete<operation::log_softmax, x_type<partial<sum>>>();
}
#endif

// case 8: error: static.assert.*dtm contract: the operand is a pending reduction
// case 8: operation_on_partial<.*operation::maximum, .*cp0, .*partial<.*sum
#if DTM_CASE == 8
void program() {
  require_complete<operation::maximum, x_type<partial<sum>>>();
}
#endif

// case 9: error: static.assert.*dtm contract: the operand is a pending reduction
// case 9: operation_on_partial<.*operation::sigmoid, .*cp0, .*partial<.*max
#if DTM_CASE == 9
void program() {
  require_complete<operation::sigmoid, x_type<partial<max>>>();
}
#endif

// case 10: error: static.assert.*dtm contract: the operand is a pending reduction
// case 10: operation_on_partial<.*operation::sigmoid, .*cp1, .*partial<.*sum
#if DTM_CASE == 10
void program() {
  require_complete<operation::sigmoid, pair_placed<shard<0>, shard<1>, partial<sum>>>();
}
#endif

// case 11: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 11: dimension_is_sharded<.*operation::layer_norm, .*cp0, 1>
#if DTM_CASE == 11
void program() {
  require_whole<operation::layer_norm, x_type<shard<1>>, 1>();
}
#endif

// case 12: error: static.assert.*dtm contract: this operation needs the whole dimension
// case 12: dimension_is_sharded<.*operation::log_softmax, .*cp1, 2>
#if DTM_CASE == 12
void program() {
  require_whole<operation::log_softmax, pair_placed<shard<0>, shard<1>, shard<2>>, 2>();
}
#endif

// case 13: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 13: placement_on<.*at<.*operation::add, .*operand::right>, .*cp0, .*shard<0>, .*replicate>
#if DTM_CASE == 13
void program() {
  require_same<operation::add, x_type<shard<0>>, x_type<replicate>>();
}
#endif

// case 14: error: static.assert.*dtm contract: placement differs on one mesh axis
// case 14: placement_on<.*operation::add, .*.*cp0, .*partial<.*sum ?>, .*replicate>
#if DTM_CASE == 14
void program() {
  require_same<operation::add, x_type<partial<sum>>, x_type<replicate>>();
}
#endif

// case 15: error: static.assert.*dtm contract: the element type differs
// case 15: element_type<.*at<.*operation::add, .*operand::right>, float, .*bf16>
#if DTM_CASE == 15
void program() {
  require_same<operation::add, x_type<replicate>, with_element_t<x_type<replicate>, bf16>>();
}
#endif

// case 16: error: static.assert.*dtm shape: the shape has no such position
// case 16: position_outside<.*shape<.*tokens, .*c<8> ?>, 2>
#if DTM_CASE == 16
using wrong = sum_layout_t<x_type<shard<0>>::layout_type, 2>;
#endif
