// Planted faults of triangle attention and of the pair block.

#include "faults.hpp"

#include "dtm/modules/pairformer_noseq_layer.hpp"
#include "dtm/serial/pairformer_noseq_layer.hpp"
#include "triangle_attention.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using fp64 = space<double, grid>;

parity_plan quick() {
  auto plan = plan_with_empty_rows();
  plan.print = nullptr;
  plan.repeat = false;
  return plan;
}

std::vector<int> square() {
  return {1, ranks() == 9 ? 3 : 2, ranks() == 9 ? 3 : 2};
}

template <class Node, class Schedule>
parity_report with(talk how) {
  faulty_context ctx(world(), square(), how);
  triangle_attention<Node, fp64, 8, 2, 4, Schedule> module(ctx);
  return parity(ctx, module, attention_oracle<Node, 8, 2, 4>(1e9), extents_on(square()), quick());
}

/// Triangle attention with a mistake of its own.
enum class slip { nothing, mask_ignored, bias_dropped };

template <class Node>
struct slipping : triangle_attention<Node, fp64, 8, 2, 4> {
  using base = triangle_attention<Node, fp64, 8, 2, 4>;
  using X = typename base::X;
  using Mask = typename base::Mask;
  slip what;

  template <class Context>
  slipping(Context& ctx, slip planted) : base(ctx), what(planted) {}

  template <class Context>
  typename base::result forward(Context& ctx, X const& x, Mask const& mask) const {
    if (what == slip::mask_ignored) {
      auto ones = mask.clone();
      std::fill_n(ones.data(), ones.size(), 1.0);
      return base::forward(ctx, x, ones);
    }
    if (what == slip::bias_dropped) {
      auto& weight = const_cast<slipping*>(this)->linear.weight;
      auto const kept = weight.clone();
      std::fill_n(weight.data(), weight.size(), 0.0);
      auto made = base::forward(ctx, x, mask);
      std::copy_n(kept.data(), kept.size(), weight.data());
      return made;
    }
    return base::forward(ctx, x, mask);
  }
};

}  // namespace

TEST_CASE("attention without a fault") {
  CHECK(with<starting, row_resident>(talk::right).passed());
  CHECK(with<ending, row_resident>(talk::right).passed());
  CHECK(with<starting, ring>(talk::right).passed());
  CHECK(with<ending, ring>(talk::right).passed());
}

TEST_CASE("attention: parameter gradients that are not summed over cp1") {
  CHECK(with<starting, row_resident>(talk::without_cp1).failed(check::values));
  CHECK(with<ending, ring>(talk::without_cp1).failed(check::values));
}

TEST_CASE("attention: a ring that turns the other way, and one that stands still") {
  CHECK(with<starting, ring>(talk::other_neighbour).failed(check::values) == (square()[2] == 3));
  CHECK(with<starting, ring>(talk::stale_tile).failed(check::values));
  CHECK(with<ending, ring>(talk::stale_tile).failed(check::values));
}

TEST_CASE("attention: the mask or the bias is forgotten, or the other node computed") {
  for (auto const planted : {slip::nothing, slip::mask_ignored, slip::bias_dropped}) {
    context<host, grid> ctx(world(), square());
    slipping<starting> module(ctx, planted);
    auto const report = parity(ctx, module, attention_oracle<starting, 8, 2, 4>(1e9),
                               extents_on(square()), quick());
    CHECK(report.failed(check::values) == (planted != slip::nothing));
  }
  context<host, grid> ctx(world(), square());
  triangle_attention<starting, fp64, 8, 2, 4> module(ctx);
  CHECK(parity(ctx, module, attention_oracle<ending, 8, 2, 4>(1e9), extents_on(square()), quick())
            .failed(check::values));
}

TEST_CASE("pair block: gradients without cp1") {
  for (talk how : {talk::right, talk::without_cp1}) {
    faulty_context ctx(world(), square(), how);
    pairformer_noseq_layer<fp64, 8, 2, 4> layer(ctx);
    auto const oracle =
        serial_oracle([](auto t) { return serial::pairformer_noseq_layer<decltype(t)>(8, 4, 2); });
    auto const report = parity(ctx, layer, oracle, extents_on(square()), quick());
    INFO(report.text());
    CHECK(report.passed() == (how == talk::right));
    CHECK(report.failed(check::replicas) == (how == talk::without_cp1));
  }
}
