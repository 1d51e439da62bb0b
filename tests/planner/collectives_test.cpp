// Every typed collective alone: what its buffers and copies take and what it sends.

#include "dtm/ops/elementwise.hpp"
#include "dtm/ops/share.hpp"
#include "plan_and_run.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

template <class Device, class... Placement>
using pair_placed =
    tensor<float, layout<grid, shape<batch, tokens, tokens, c<5>>, shard<0>, Placement...>, Device>;

template <class Costs>
void every_collective(Costs& costs) {
  auto& ctx = costs.ctx();
  using device_type = typename std::remove_cvref_t<decltype(ctx)>::device_type;
  auto const bound = extents{bind<batch>(2), bind<tokens>(12)};
  auto const z = zero_tensor<pair_placed<device_type, shard<1>, shard<2>>>(ctx, bound);
  auto const terms = zero_tensor<pair_placed<device_type, shard<1>, partial<sum>>>(ctx, bound);
  auto const whole = zero_tensor<pair_placed<device_type, shard<1>, replicate>>(ctx, bound);

  costs.add("all_gather", [&] { return apply<all_gather<cp1>>(ctx, z, "z"); });
  costs.add("all_reduce", [&] { return apply<all_reduce<cp1>>(ctx, terms, "terms"); });
  costs.add("reduce_scatter", [&] { return apply<reduce_scatter<cp1, 2>>(ctx, terms, "terms"); });
  costs.add("all_to_all, uneven", [&] { return apply<all_to_all<move<cp1, 3>>>(ctx, z, "z"); });
  costs.add("transpose", [&] { return apply<transpose<cp0, cp1>>(ctx, z, "z"); });
  costs.add("transpose of a replica", [&] { return apply<transpose<cp0, cp1>>(ctx, whole, "w"); });
  costs.add("transpose of terms", [&] { return apply<transpose<cp0, cp1>>(ctx, terms, "terms"); });
  costs.add("all_slice", [&] { return apply<all_slice<cp1, 2>>(ctx, whole, "whole"); });
  costs.add("broadcast", [&] { return apply<broadcast<cp1>>(ctx, whole, "whole"); });
  costs.add("shift", [&] { return shift_along<cp0>(ctx, z, 1, "z").wait(); });
  costs.add("shift by nothing", [&] { return shift_along<cp0>(ctx, z, 0, "z").wait(); });
  costs.add("two at once", [&] {
    auto first = begin<all_gather<cp0>>(ctx, z, "z");
    auto second = begin<all_gather<cp1>>(ctx, z, "z");
    second.wait();
    return first.wait();
  });
  costs.add("given", [&] { return apply<transpose<cp0, cp1>>(ctx, z.clone(), "z"); });
  costs.add("complete", [&] { return complete(ctx, terms.clone()); });
}

}  // namespace

TEST_CASE("every collective") {
  plan_is_run([](auto& costs) { every_collective(costs); });
}
