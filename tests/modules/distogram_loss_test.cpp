// Distogram loss: aggregated conformers, and the minimum over several distograms.

#include "dtm/modules/losses/distogram_loss.hpp"

#include "dtm/serial/distogram_loss.hpp"
#include "on_meshes.hpp"

namespace {

using namespace dtm;
using testing::grid;
using testing::place;

constexpr std::int64_t bins = 6, conformer_count = 3;

template <class T, std::int64_t Distograms>
void run(bool aggregate, testing::parity_plan plan = {}) {
  testing::serial_oracle const oracle(
      [aggregate](auto t) { return serial::distogram_loss<decltype(t)>{aggregate}; },
      [](auto& loss, auto const& request, auto&) {
        using V = typename std::remove_cvref_t<decltype(loss)>::value_type;
        auto const result = loss.forward(request.real(0), request.real(1), request.real(2));
        auto dx = loss.backward(result.kept, request.upstream[0].values[0], request.upstream[1]);
        return testing::serial_outcome<V>{
            {serial::array<V>({}, std::vector<V>{result.loss}), result.batch_loss}, {dx}};
      });
  plan.title =
      "distogram_loss of " + std::to_string(Distograms) + (aggregate ? ", aggregated" : "");
  plan.draws["target"] = [](std::uint64_t key, place const& p) {  // one bin a pair and conformer
    return double(testing::bits(key, p.linear / bins) % bins == p.linear % bins);
  };
  testing::on_meshes([&](auto& ctx) {
    distogram_loss<space<T, grid>, bins, Distograms> loss;
    loss.aggregate_distogram = aggregate;
    auto const bound = extents{bind<batch>(2), bind<tokens>(12), bind<conformers>(conformer_count)};
    auto const report = testing::parity(ctx, loss, oracle, bound, plan);
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
  run<float, 1>(true);
}
TEST_CASE("distogram loss, bf16") {
  testing::parity_plan plan;
  plan.roundings = 1;  // dpred; everything before it is fp32
  run<bf16, 1>(true, plan);
}
