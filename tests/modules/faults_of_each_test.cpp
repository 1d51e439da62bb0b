// At least one planted fault a module; those of triangle multiplication are in faults_test.cpp.

#include "faults.hpp"

#include "dtm/modules/distogram_module.hpp"
#include "dtm/modules/initial_pair.hpp"
#include "dtm/modules/losses/distogram_loss.hpp"
#include "dtm/modules/relative_position_encoder.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/serial/distogram_module.hpp"
#include "dtm/serial/initial_pair.hpp"
#include "dtm/serial/transition.hpp"
#include "oracles.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using fp64 = space<double, grid>;

parity_plan quick() {
  parity_plan plan;
  plan.print = nullptr;
  plan.repeat = plan.padding = plan.differences = false;
  return plan;
}

std::vector<int> square() {
  return {1, ranks() == 9 ? 3 : 2, ranks() == 9 ? 3 : 2};
}

template <class Module, class Oracle>
void sees_a_dropped_reduction(Oracle const& oracle) {
  for (talk how : {talk::right, talk::without_cp1}) {
    faulty_context ctx(world(), square(), how);
    Module module(ctx);
    auto const report = parity(ctx, module, oracle, usual_extents(), quick());
    INFO(report.text());
    CHECK(report.passed() == (how == talk::right));
    CHECK(report.failed(check::values) == (how == talk::without_cp1));
    CHECK(report.failed(check::replicas) == (how == talk::without_cp1));
  }
}

}  // namespace

TEST_CASE("transition: gradients without cp1") {
  sees_a_dropped_reduction<transition<fp64, 8, 24>>(
      serial_oracle([](auto t) { return serial::transition<decltype(t)>(8, 24); }));
}
TEST_CASE("initial pair: gradients without cp1") {
  sees_a_dropped_reduction<initial_pair<fp64, 10, 8>>(
      serial_oracle([](auto t) { return serial::initial_pair<decltype(t)>(10, 8); }));
}
TEST_CASE("distogram head: gradients without cp1") {
  sees_a_dropped_reduction<distogram_module<fp64, 8, 5, 1>>(
      serial_oracle([](auto t) { return serial::distogram_module<decltype(t)>(8, 5); }));
}

TEST_CASE("relative positions: nobody hears of another rank's cyclic period") {
  for (talk how : {talk::right, talk::flag_of_one}) {
    faulty_context ctx(world(), square(), how);
    relative_position_encoder<fp64, 5, 3, 1> module(ctx);
    auto plan = quick();
    plan.draws["features"] = position_features(true);
    auto const report = parity(ctx, module, position_oracle<5, 3, 1>({}), usual_extents(), plan);
    CHECK(report.failed(check::values) == (how == talk::flag_of_one));
  }
}

TEST_CASE("distogram loss: a sum that leaves cp1 out") {
  for (talk how : {talk::right, talk::short_sum}) {
    faulty_context ctx(world(), square(), how);
    distogram_loss<fp64, 6, 1> loss;
    auto plan = quick();
    plan.draws["target"] = one_bin<6>;
    auto const bound = extents{bind<batch>(2), bind<tokens>(12), bind<conformers>(3)};
    auto const report = parity(ctx, loss, loss_oracle(true), bound, plan);
    CHECK(report.failed(check::values) == (how == talk::short_sum));
    CHECK(report.failed(check::replicas) ==
          (how == talk::short_sum));  // the loss differs between ranks
  }
}

namespace {

/// y = x, every rank with everything; `last` perturbs the last rank's result by a bit.
struct whole_copy {
  using mesh_type = grid;
  using X = tensor<double, uniform_layout_t<grid, shape<batch, tokens, c<2>>, replicate>>;
  struct contract {
    using inputs = dtm::inputs<named<arg::x, X>>;
    using outputs = dtm::outputs<named<arg::y, X>>;
    using forward = collectives<>;
    using backward = collectives<>;
    using saved = dtm::saved<>;
  };
  struct kept {
    std::int64_t bytes() const { return 0; }
  };
  struct result {
    X y;
    kept saved;
  };
  bool last = false;

  template <class Context>
  result forward(Context& ctx, X const& x) const {
    result done{x.clone(), {}};
    if (last && ctx.world().rank() == ctx.world().size() - 1) done.y.data()[0] *= 1 + 1e-15;
    return done;
  }
  template <class Context>
  cotangent_t<X> backward(Context&, kept, cotangent_t<X> const& dy) const {
    return dy.clone();
  }
};

template <class T>
struct serial_copy {
  using value_type = T;
  struct saved {};
  struct result {
    serial::array<T> y;
    saved kept;
  };
  result forward(serial::array<T> const& x) const { return {x, {}}; }
  serial::array<T> backward(saved const&, serial::array<T> const& dy, serial_copy&) const {
    return dy;
  }
};

}  // namespace

TEST_CASE("an input that every rank holds whole, and a replica that differs by a bit") {
  context<host, grid> ctx(world(), square());
  serial_oracle const oracle([](auto t) { return serial_copy<decltype(t)>(); });
  whole_copy module;
  auto plan = quick();
  CHECK(parity(ctx, module, oracle, usual_extents(), plan).failed(check::sharding));
  plan.whole_inputs = {"x"};
  CHECK(parity(ctx, module, oracle, usual_extents(), plan).passed());
  module.last = true;
  CHECK(parity(ctx, module, oracle, usual_extents(), plan).failed(check::replicas));
}
