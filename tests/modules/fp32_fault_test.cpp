// A loss of precision that no tolerance sees, but the quantiles do.

#include "dtm/modules/transition.hpp"

#include "dtm/serial/transition.hpp"
#include "on_meshes.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

/// Two bits of each result are lost.
struct coarse : transition<space<float, grid>, 8, 24> {
  using base = transition<space<float, grid>, 8, 24>;
  using base::base;
  template <class Context, class X>
  result forward(Context& ctx, X const& x) const {
    auto done = base::forward(ctx, x);
    for (std::int64_t i = 0; i < done.y.size(); ++i) {
      auto bits = __builtin_bit_cast(std::uint32_t, done.y.data()[i]);
      done.y.data()[i] = __builtin_bit_cast(float, bits & ~7u);
    }
    return done;
  }
};

}  // namespace

TEST_CASE("lost bits shift the error quantiles") {
  on_meshes([](auto& ctx) {
    coarse module(ctx);
    serial_oracle const oracle([](auto t) { return serial::transition<decltype(t)>(8, 24); });
    parity_plan plan;
    plan.print = nullptr;
    plan.differences = plan.padding = false;
    auto const report = parity(ctx, module, oracle, usual_extents(), plan);
    CHECK_FALSE(report.failed(check::values));
    CHECK(report.failed(check::precision));
  });
}
