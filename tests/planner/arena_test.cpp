// What a plan says is enough: the host's arena, reserved by it, asks the system for no more.

#include "dtm/modules/triangle_multiplication.hpp"
#include "dtm/parameters/gradients.hpp"
#include "plan_and_run.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

/// A module's forward and backward; the most bytes that there are at once.
template <class Context>
std::int64_t work(Context& ctx) {
  using S = space<float, grid, typename Context::device_type>;
  using module_type = triangle_multiplication<outgoing, S, 16>;
  module_type module(ctx);
  set_to_zero(module);
  auto const bound = extents{bind<batch>(2), bind<tokens>(96)};
  auto const x = zero_tensor<typename module_type::X>(ctx, bound);
  auto const mask = zero_tensor<typename module_type::Mask>(ctx, bound);
  auto gradients = zero_gradients(ctx, module);
  auto made = module.forward(ctx, x, mask);
  module.backward(ctx, std::move(made.saved), made.y, gradients);
  return ctx.memory().together.peak_bytes;
}

}  // namespace

TEST_CASE("an arena that is reserved by a plan suffices") {
  for (auto const& sizes : meshes()) {
    auto options = test_options();
    planned_context::options planned;
    planned.transport = options.transport;
    planned.ranks_per_node = options.ranks_per_node;
    comm::planned_world as_this(ranks(), rank());
    planned_context plan(as_this, sizes, 0, planned);
    std::int64_t const bytes = work(plan);
    options.arena_bytes = std::size_t(bytes);
    test_context ctx(world(), sizes, 0, options);
    CHECK(work(ctx) == bytes);
    CHECK(ctx.device().arena().system_allocations() == 1);
    if (rank() == 0)
      std::printf("planned %lld bytes, used %zu of %zu\n", static_cast<long long>(bytes),
                  ctx.device().arena().most_used_bytes(), ctx.device().arena().reserved_bytes());
  }
}
