#pragma once
// einsum<"bdik,bdjk->bdij">(ctx, a, b): a contraction whose result layout is derived (law L3).
// Labels name dimensions; a label in both operands and not in the result is summed. No
// communication: where an axis shards a summed label alike in both operands the result is
// partial<sum> on it; operands that disagree do not compile.
//
// Labels fall into groups: batch (both operands and result), m (left and result), n (right and
// result), k (summed). Supported orders: left = batch m k or batch k m, right = batch k n or batch
// n k, result = batch m n; anything else is refused at compile time (permute first).

#include "dtm/backend/local.hpp"
#include "dtm/contract/place_rules.hpp"

namespace dtm {

namespace contract {
template <class Operation>
struct contraction_order {
  static_assert(dtm::detail::false_for<Operation>,
                "dtm contract: the labels are not in a supported order: left batch-m-k or "
                "batch-k-m, right batch-k-n or batch-n-k, result batch-m-n; permute an operand "
                "first; Operation stands in the line that names contraction_order");
};
}  // namespace contract

namespace detail {

struct contraction_groups {
  int batch = 0, m = 0, n = 0, k = 0;
  bool left_transposed = false, right_transposed = false, supported = true;
};

constexpr contraction_groups group_labels(formula const& f) {
  contraction_groups g;
  labels batch, m, n, k;
  for (int i = 0; i < f.left.count; ++i) {
    char const label = f.left.letter[i];
    bool const right = f.right.find(label) >= 0, result = f.result.find(label) >= 0;
    if (right && result)
      batch.append(label);
    else if (right)
      k.append(label);
    else if (result)
      m.append(label);
    else
      g.supported = false;  // a label summed in one operand alone: sum_over first
  }
  for (int i = 0; i < f.right.count; ++i) {
    char const label = f.right.letter[i];
    if (f.left.find(label) >= 0) continue;
    if (f.result.find(label) >= 0)
      n.append(label);
    else
      g.supported = false;
  }
  auto matches = [](labels const& order, labels const& a, labels const& b, labels const& c) {
    labels joined;
    for (labels const* part : {&a, &b, &c})
      for (int i = 0; i < part->count; ++i) joined.append(part->letter[i]);
    if (joined.count != order.count) return false;
    for (int i = 0; i < order.count; ++i)
      if (joined.letter[i] != order.letter[i]) return false;
    return true;
  };
  if (!g.supported) return g;
  g.left_transposed = !matches(f.left, batch, m, k);
  g.right_transposed = !matches(f.right, batch, k, n);
  g.supported = (!g.left_transposed || matches(f.left, batch, k, m)) &&
                (!g.right_transposed || matches(f.right, batch, n, k)) &&
                matches(f.result, batch, m, n);
  g.batch = batch.count;
  g.m = m.count;
  g.n = n.count;
  g.k = k.count;
  return g;
}

template <text Formula, class X, class Y>
using contraction_result_t = with_layout_t<
    X, typename contracted<Formula, typename X::layout_type, typename Y::layout_type>::type>;

}  // namespace detail

template <text Formula, class Context, any_tensor X, any_tensor Y>
detail::contraction_result_t<Formula, X, Y> einsum(Context& ctx, X const& x, Y const& y) {
  using rule = detail::contracted<Formula, typename X::layout_type, typename Y::layout_type>;
  using result_type = detail::contraction_result_t<Formula, X, Y>;
  constexpr auto groups = detail::group_labels(rule::parsed);
  using check = detail::first_error<
      typename rule::check,
      detail::element_check<typename rule::operation_type, typename X::element_type,
                            typename Y::element_type>,
      detail::unless<groups.supported, contract::contraction_order<typename rule::operation_type>>>;
  (void)sizeof(check);

  global_extents<result_type::rank> global;
  for (int d = 0; d < result_type::rank; ++d) {
    int const in_x = rule::parsed.left.find(rule::parsed.result.letter[d]);
    int const in_y = rule::parsed.right.find(rule::parsed.result.letter[d]);
    global[d] = in_x >= 0 ? x.global_extent(in_x) : y.global_extent(in_y);
  }
  for (int d = 0; d < X::rank; ++d) {
    int const in_y = rule::parsed.right.find(rule::parsed.left.letter[d]);
    if (in_y >= 0 && y.global_extent(in_y) != x.global_extent(d))
      detail::refuse_local_size("contraction, extent of a shared dimension", y.global_extent(in_y),
                                x.global_extent(d));
  }
  result_type result(ctx, global);
  auto const a = x.to_local();
  auto const b = y.to_local();
  auto product = [](auto const& shape, int begin, int count) {
    std::int64_t value = 1;
    for (int d = begin; d < begin + count; ++d) value *= shape.extent[d];
    return value;
  };
  local::gemm_shape shape;
  shape.left_transposed = groups.left_transposed;
  shape.right_transposed = groups.right_transposed;
  shape.batch = product(a, 0, groups.batch);
  shape.m = product(a, groups.batch + (groups.left_transposed ? groups.k : 0), groups.m);
  shape.k = product(a, groups.batch + (groups.left_transposed ? 0 : groups.m), groups.k);
  shape.n = product(b, groups.batch + (groups.right_transposed ? 0 : groups.k), groups.n);
  if constexpr (detail::holds<check>) local::gemm(ctx, shape, x.data(), y.data(), result.data());
  return result;
}

}  // namespace dtm
