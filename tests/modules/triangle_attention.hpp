#pragma once
// Triangle attention under test, as its files share it.

#include "dtm/modules/triangle_attention.hpp"

#include "dtm/serial/triangle_attention.hpp"
#include "on_meshes.hpp"

namespace dtm::testing {

template <class Node>
constexpr serial::triangle_node serial_node =
    std::is_same_v<Node, starting> ? serial::triangle_node::starting
                                   : serial::triangle_node::ending;

/// Tokens that divide by the ranks of every mesh. On the emulator, where a pair block takes minutes with
/// 36 of them, there are fewer; tests of the kernels have long rows.
inline std::int64_t attention_tokens() {
#ifndef DTM_TEST_ON_GPU
  if (!std::is_same_v<device, host>) return ranks() == 9 ? 9 : 12;
#endif
  return 36;
}

template <class Node, std::int64_t C, std::int64_t Heads, std::int64_t Width>
auto attention_oracle(double infinity) {
  return serial_oracle([infinity](auto t) {
    serial::triangle_attention<decltype(t)> module(serial_node<Node>, C, Width, Heads);
    module.infinity = decltype(t)(infinity);
    return module;
  });
}

/// A mask that leaves every token that is not padding itself as a key.
inline double draw_mask_with_diagonal(std::uint64_t key, place const& p) {
  if (!is_padding(p) && p.index[1] == p.index[2]) return 1;
  return draw_weight_mask(key, p);
}

/// A row whose keys are all masked attends to all of them, padding too: what it gives depends on the
/// padding, and scores beside the large constant are too coarse for differences.
inline parity_plan plan_with_empty_rows() {
  parity_plan plan;
  plan.padding = plan.differences = false;
  return plan;
}
/// Where no row is empty nothing depends on the padding; the constant is of a size beside which
/// differences can be formed, and exp of it is still nothing.
inline parity_plan plan_without_empty_rows() {
  parity_plan plan;
  plan.draws["mask"] = draw_mask_with_diagonal;
  plan.seed = 3;
  return plan;
}
inline constexpr double moderate_infinity = 1e4;

/// What the contract promises of elements sent, mean over ranks, for t positions of a tile.
struct attention_volume {
  double forward, backward;
};
template <class Node, class Context>
attention_volume row_resident_volume(Context& ctx, double channels, double heads, double t) {
  double const q = ctx.template size<cp0>() * ctx.template size<cp1>(),
               p = std::is_same_v<Node, starting> ? ctx.template size<cp1>()
                                                  : ctx.template size<cp0>();
  double const rows = (1 - 1 / p) * t, bias = (q - 1) * t * heads;
  return {rows * (2 * channels + 1) + bias, rows * 2 * channels + 2 * bias};
}

/// Parity and volume on every mesh.
template <class T, class Node, class Schedule, std::int64_t C, std::int64_t Heads,
          std::int64_t Width>
void attention_on_meshes(parity_plan plan, double infinity = 1e9) {
  constexpr std::int64_t samples = 2;
  std::int64_t const n = attention_tokens();
  using module_type = triangle_attention<Node, space_of<T>, C, Heads, Width, Schedule>;
  plan.title = std::string(module_type::tag::name) + " " + Schedule::name +
               " C=" + std::to_string(C) + " heads=" + std::to_string(Heads) + "x" +
               std::to_string(Width);
  for (auto const& sizes : meshes()) {
    test_context ctx(world(), sizes, 0, test_options());
    module_type module(ctx);
    module.infinity = infinity;
    auto const report = parity(ctx, module, attention_oracle<Node, C, Heads, Width>(infinity),
                               extents{bind<batch>(samples), bind<tokens>(n)}, plan);
    INFO(report.text());
    CHECK(report.passed());
    double const t = double(samples) * double(n) * double(n) / ctx.where().ranks();
    auto const volume = row_resident_volume<Node>(ctx, C, Heads, t);
    CHECK(report.forward_sent_elements == Approx(volume.forward).epsilon(1e-12).margin(1e-12));
    CHECK(report.backward_sent_elements == Approx(volume.backward).epsilon(1e-12).margin(1e-12));
  }
}

}  // namespace dtm::testing
