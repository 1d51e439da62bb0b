// Distogram loss: aggregated conformers, and the minimum over several distograms.

#include "dtm/modules/losses/distogram_loss.hpp"

#include "oracles.hpp"

namespace {

using namespace dtm;
using testing::space_of;

constexpr std::int64_t bins = 6, conformer_count = 3;

template <class T, std::int64_t Distograms>
void run(bool aggregate, testing::parity_plan plan = {}) {
  plan.title =
      "distogram_loss of " + std::to_string(Distograms) + (aggregate ? ", aggregated" : "");
  plan.draws["target"] = testing::one_bin<bins>;
  testing::on_meshes([&](auto& ctx) {
    distogram_loss<space_of<T>, bins, Distograms> loss;
    loss.aggregate_distogram = aggregate;
    auto const bound = extents{bind<batch>(2), bind<tokens>(12), bind<conformers>(conformer_count)};
    auto const report = testing::parity(ctx, loss, testing::loss_oracle(aggregate), bound, plan);
    INFO(report.text());
    CHECK(report.passed());
  });
}

}  // namespace

TEST_CASE("distogram loss, aggregated, fp64") {
  run<double, 1>(true);
}
TEST_CASE("distogram loss, minimum over distograms, fp64") {
  run<double, 2>(false);
}
TEST_CASE("distogram loss, fp32") {
  testing::parity_plan plan;
  plan.independent_errors = 2;  // a sample's dpred has one factor, upstream / denominator
  run<float, 1>(true, plan);
}
TEST_CASE("distogram loss, bf16") {
  testing::parity_plan plan;
  plan.roundings = 1;  // dpred; everything before it is fp32
  run<bf16, 1>(true, plan);
}
