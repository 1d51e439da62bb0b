// Every planted fault is seen, by the check that is there for it. Four and nine ranks: what a ring
// of two hides, a ring of three shows.

#include "faults.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using sound = triangle_multiplication<outgoing, space<double, grid>, 8>;
using ring = triangle_multiplication<outgoing, space<double, grid>, 8, cannon>;

parity_plan quiet() {
  parity_plan plan;
  plan.print = nullptr;
  return plan;
}

std::vector<int> square() {
  return {1, ranks() == 9 ? 3 : 2, ranks() == 9 ? 3 : 2};
}

template <class Module>
parity_report with(talk how, parity_plan const& plan) {
  faulty_context ctx(world(), square(), how);
  Module module(ctx);
  return parity(ctx, module, triangle_oracle<outgoing, 8>(), usual_extents(), plan);
}

parity_report with(wrong what, parity_plan const& plan = quiet()) {
  context<host, grid> ctx(world(), square());
  faulty<sound> module(ctx, what);
  return parity(ctx, module, triangle_oracle<outgoing, 8>(), usual_extents(), plan);
}

}  // namespace

TEST_CASE("without a fault nothing is reported") {
  CHECK(with(wrong::nothing).passed());
  CHECK(with<ring>(talk::right, quiet()).passed());
}

TEST_CASE("parameter gradients that are not summed over cp1") {
  auto plan = quiet();
  plan.differences = plan.padding = false;
  auto const report = with<sound>(talk::without_cp1, plan);
  CHECK(report.failed(check::values));
  CHECK(report.failed(check::replicas));
  for (auto const& y : report.outputs)
    CHECK(y.error <= 1e-12);  // outputs and input gradients see nothing
  for (auto const& dx : report.input_gradients) CHECK(dx.error <= 1e-12);
  for (auto const& dw : report.parameter_gradients) CHECK(dw.error > 1e-3);
}

TEST_CASE("the neighbour on the other side: a ring of two cannot see it, a ring of three does") {
  auto plan = quiet();
  plan.repeat = plan.differences = plan.padding = false;
  auto const report = with<ring>(talk::other_neighbour, plan);
  CHECK(report.failed(check::values) == (square()[2] == 3));
}

TEST_CASE("a stale tile in the ring") {
  auto plan = quiet();
  plan.repeat = plan.differences = plan.padding = false;
  CHECK(with<ring>(talk::stale_tile, plan).failed(check::values));
}

TEST_CASE("a ring along the other axis") {  // the ranks' own check is quicker than the harness
  CHECK_THROWS_AS(with<ring>(talk::exchanged_axes, quiet()), collective_mismatch);
}

TEST_CASE("a gradient scaled by the number of ranks") {
  auto const report = with(wrong::gradient_scaled);
  CHECK(report.failed(check::values));
  CHECK(report.failed(check::differences));
}
TEST_CASE("a transposed tile") {
  CHECK(with(wrong::transposed_tile).failed(check::values));
}
TEST_CASE("a mask that is ignored") {
  CHECK(with(wrong::mask_ignored).failed(check::values));
}
TEST_CASE("an input that changes by one bit") {
  CHECK(with(wrong::input_changed).failed(check::inputs_unmodified));
}
TEST_CASE("a parameter that changes by one bit on one rank") {
  auto const report = with(wrong::parameter_changed);
  INFO(report.text());
  REQUIRE(report.failed(check::inputs_unmodified));
  for (auto const& f : report.failures)
    if (f.about == check::inputs_unmodified) CHECK(f.rank == ranks() - 1);
}
TEST_CASE("a message too many") {
  CHECK(with(wrong::message_too_many).failed(check::collectives));
}
TEST_CASE("more is kept than the contract says") {
  CHECK(with(wrong::keeps_too_much).failed(check::saved_bytes));
}
TEST_CASE("other bits in every run") {
  CHECK(with(wrong::another_time).failed(check::determinism));
}
TEST_CASE("gradients that are assigned") {
  CHECK(with(wrong::gradient_assigned).failed(check::gradients_add));
}
TEST_CASE("an input gradient that adds to the last one") {
  CHECK(with(wrong::input_gradient_adds).failed(check::determinism));
}
TEST_CASE("a result that reads the padding") {
  auto const report = with(wrong::reads_padding);
  CHECK_FALSE(report.failed(check::values));
  CHECK(report.failed(check::padding));
}

TEST_CASE("a mask of zeros: nothing would be compared") {
  auto plan = quiet();
  plan.differences = plan.repeat = plan.padding = false;
  plan.draws["mask"] = [](std::uint64_t, place const&) { return 0.0; };
  CHECK(with(wrong::nothing, plan).failed(check::all_zero));
}

TEST_CASE("module and oracle share a mistake: only the differences see it") {
  context<host, grid> ctx(world(), square());
  faulty<sound> module(ctx, wrong::gradient_scaled);
  double const scale = ranks();
  serial_oracle const oracle(
      [](auto t) {
        return serial::triangle_multiplication<decltype(t)>(serial_direction<outgoing>, 8);
      },
      [scale](auto& serial_module, auto const& request, auto& gradients) {
        auto [y, kept] = serial_module.forward(request.real(0), request.real(1));
        auto dx = serial_module.backward(kept, request.upstream[0], gradients);
        gradients.each_parameter([&](std::string const&, auto& values) {
          for (auto& value : values.values) value *= scale;
        });
        return serial_outcome<double>{{y}, {dx}};
      });
  auto plan = quiet();
  plan.repeat = plan.padding = false;
  auto const report = parity(ctx, module, oracle, usual_extents(), plan);
  CHECK_FALSE(report.failed(check::values));
  CHECK(report.failed(check::differences));
}

TEST_CASE("an oracle with other parameters") {
  context<host, grid> ctx(world(), square());
  sound module(ctx);
  auto plan = quiet();
  plan.repeat = plan.padding = plan.differences = false;
  auto const report = parity(ctx, module, triangle_oracle<outgoing, 4>(), usual_extents(), plan);
  REQUIRE(report.failed(check::parameter_names));
  CHECK_THAT(report.text(),
             contains("parameter 0 is norm_in.weight(8), serially norm_in.weight(4)"));
}
