// The same mesh and binary give the same bits, twenty times; replicas are compared bit for bit by
// the ranks themselves at check level 3.

#include "faults.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using module_type = triangle_multiplication<outgoing, space<double, grid>, 8>;

parity_plan bare() {
  parity_plan plan;
  plan.repeat = plan.padding = plan.differences = false;
  return plan;
}

}  // namespace

TEST_CASE("twenty runs give the same bits") {
  on_meshes([](auto& ctx) {
    module_type module(ctx);
    auto const bound = usual_extents();
    auto const plan = bare();
    parity_run<context<host, grid>, module_type, std::remove_const_t<decltype(bound)>> run(
        ctx, module, bound, plan);
    auto const first = run.plain_run();
    for (int i = 1; i < 20; ++i) {
      auto const again = run.plain_run();
      CHECK(again.outputs[0].values == first.outputs[0].values);
      CHECK(again.input_gradients[0].values == first.input_gradients[0].values);
      for (std::size_t p = 0; p < first.parameter_gradients.size(); ++p)
        CHECK(again.parameter_gradients[p].values.values ==
              first.parameter_gradients[p].values.values);
    }
    CHECK(run.report.failures.empty());
  });
}

TEST_CASE("parity at check level 3") {
  comm::options settings;
  settings.deadline_seconds = 20;
  settings.level = comm::check_level::data;
  comm::world strict(world().native(), settings);
  for (auto const& sizes : meshes()) {
    context<host, grid> ctx(strict, sizes);
    module_type module(ctx);
    auto const report =
        parity(ctx, module, triangle_oracle<outgoing, 8>(), usual_extents(), bare());
    INFO(report.text());
    CHECK(report.passed());
  }
}
