// A program that repeats itself asks the system for memory the first time only: triangle
// multiplication forward and backward, and a step of training.

#include <malloc.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>

#include "dtm/host.hpp"
#include "dtm/modules/triangle_multiplication.hpp"
#include "gpu/trainer.hpp"
#include "support/catch.hpp"
#include "support/meshes.hpp"
#include "support/runner.hpp"

namespace {
// Of C++, ever. What is smaller has names in it, and does not grow with the number of tokens.
std::int64_t large_objects = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  large_objects += bytes >= 16384;
  if (void* const pointer = std::malloc(bytes > 0 ? bytes : 1)) return pointer;
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
  large_objects += bytes >= 16384;
  return std::malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* pointer) noexcept {
  std::free(pointer);
}
void operator delete(void* pointer, std::size_t) noexcept {
  std::free(pointer);
}

using namespace dtm;
using namespace dtm::testing;

namespace {

using grid = mesh<dp, cp0, cp1>;
using context_type = context<host, grid>;

struct demand {
  std::int64_t blocks = 0, objects = 0, mapped_by_malloc = 0, page_faults = 0;
};
demand so_far(context_type& ctx) {
  auto const heap = mallinfo2();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {ctx.device().arena().system_allocations(), large_objects, std::int64_t(heap.hblkhd),
          usage.ru_minflt};
}

/// Runs `step` twice; the second time nothing comes from the system.
void second_time_is_free(context_type& ctx, char const* name, std::function<void()> const& step) {
  step();
  ctx.ledger().clear();
  auto const before = so_far(ctx);
  std::int64_t const held = ctx.memory().current_bytes;
  step();
  auto const after = so_far(ctx);
  auto const& memory = ctx.device().arena();
  if (rank() == 0)
    std::printf(
        "%s, %d ranks: second time %lld blocks, %lld large objects, %lld bytes mapped by malloc, "
        "%lld "
        "page faults; %.1f MB reserved, %.1f used at most\n",
        name, ctx.where().ranks(), (long long)(after.blocks - before.blocks),
        (long long)(after.objects - before.objects),
        (long long)(after.mapped_by_malloc - before.mapped_by_malloc),
        (long long)(after.page_faults - before.page_faults), double(memory.reserved_bytes()) / 1e6,
        double(memory.most_used_bytes()) / 1e6);
  CHECK(before.blocks > 0);
  CHECK(after.blocks == before.blocks);
  CHECK(after.objects == before.objects);
  if (ctx.where().ranks() == 1)  // what MPI keeps for messages depends on when they arrive
    CHECK(after.mapped_by_malloc == before.mapped_by_malloc);
  CHECK(ctx.memory().current_bytes == held);
}

}  // namespace

TEST_CASE("triangle multiplication, a second time") {
  using module_type = triangle_multiplication<outgoing, space<float, grid>, 32>;
  auto const sizes = meshes().front();
  context_type ctx(world(), sizes);
  module_type module(ctx);
  auto const bound = extents{bind<batch>(1), bind<tokens>(96)};
  module_type::X x(ctx, bound), dy(ctx, bound);
  module_type::Mask mask(ctx, bound);
  for (auto* t : {&x, &dy})
    for (std::int64_t i = 0; i < t->size(); ++i) t->data()[i] = float(i % 7);
  for (std::int64_t i = 0; i < mask.size(); ++i) mask.data()[i] = 1;
  auto gradients = zero_gradients(ctx, module);
  second_time_is_free(ctx, "triangle multiplication", [&] {
    auto [y, saved] = module.forward(ctx, x, mask);
    (void)module.backward(ctx, std::move(saved), dy, gradients);
  });
}

TEST_CASE("a step of training, a second time") {
  using model_type = distogram_model<space<float, grid>, 32, 24, pair_schedules<>, 5, 16>;
  context_type ctx(world(), meshes().front());
  trainer<context_type, model_type> training(ctx, 2, 48, 1e-3);
  second_time_is_free(ctx, "a step of training", [&] { training.step(); });
}

TEST_CASE("what was foretold is one block, whatever a program does in it") {
  using model_type = distogram_model<space<float, grid>, 32, 24, pair_schedules<>, 5, 16>;
  std::int64_t needed = 0;
  {
    context_type ctx(world(), meshes().front());
    trainer<context_type, model_type> training(ctx, 2, 48, 1e-3);
    training.step();
    needed = ctx.memory().together.peak_bytes;
  }
  context_type::options chosen;
  chosen.arena_bytes = std::size_t(needed);
  context_type ctx(world(), meshes().front(), 0, chosen);
  trainer<context_type, model_type> training(ctx, 2, 48, 1e-3);
  for (int i = 0; i < 3; ++i) training.step();
  auto const& memory = ctx.device().arena();
  if (rank() == 0)
    std::printf("foretold %.2f MB, used at most %.2f\n", double(needed) / 1e6,
                double(memory.most_used_bytes()) / 1e6);
  CHECK(memory.system_allocations() == 1);
}
