#pragma once
// Triangle multiplication under test, as its files share it.

#include "dtm/modules/triangle_multiplication.hpp"

#include "dtm/serial/triangle_multiplication.hpp"
#include "on_meshes.hpp"

namespace dtm::testing {

template <class Direction>
constexpr serial::triangle_direction serial_direction =
    std::is_same_v<Direction, outgoing> ? serial::triangle_direction::outgoing
                                        : serial::triangle_direction::incoming;

template <class Direction, std::int64_t C>
auto triangle_oracle() {
  return serial_oracle([](auto t) {
    return serial::triangle_multiplication<decltype(t)>(serial_direction<Direction>, C);
  });
}

/// Elements that leave a rank, mean over ranks, against the formula of the schedule in units of the
/// pair tile.
template <class Context>
void check_volume(Context& ctx, parity_report const& report, double forward, double backward,
                  std::int64_t channels, std::int64_t samples, std::int64_t n) {
  double const unit =
      double(samples) * double(n) * double(n) * double(channels) / ctx.where().ranks();
  CHECK(report.forward_sent_elements == Approx(forward * unit).epsilon(1e-12).margin(1e-12));
  CHECK(report.backward_sent_elements == Approx(backward * unit).epsilon(1e-12).margin(1e-12));
}

/// Parity, and the volume that the schedule promises, on every mesh that the schedule runs on.
template <class T, class Direction, class Schedule, std::int64_t C>
void triangle_on_meshes(parity_plan plan = {}) {
  constexpr std::int64_t samples = 2, n = 12;
  plan.title = std::string("triangle_multiplication ") +
               (std::is_same_v<Direction, outgoing> ? "outgoing " : "incoming ") + Schedule::name +
               " C=" + std::to_string(C);
  int ran = 0;
  for (auto const& sizes : meshes()) {
    constexpr bool ring = std::is_same_v<Schedule, cannon>;
    if (ring && !is_square(sizes)) continue;
    ++ran;
    test_context ctx(world(), sizes, 0, test_options());
    triangle_multiplication<Direction, space_of<T>, C, Schedule> module(ctx);
    auto const report = parity(ctx, module, triangle_oracle<Direction, C>(),
                               extents{bind<batch>(samples), bind<tokens>(n)}, plan);
    INFO(report.text());
    CHECK(report.passed());
    double const ranks = double(sizes[1]) * sizes[2], side = sizes[1];
    if (ring)
      check_volume(ctx, report, (side - 1) * (2 + 3 / side), (side - 1) * (4 + 5 / side), C,
                   samples, n);
    else
      check_volume(ctx, report, 3 * (1 - 1 / ranks), 3 * (1 - 1 / ranks), C, samples, n);
  }
  if (ran == 0) WARN("cannon runs on square meshes only; none here");
}

/// With nothing kept the same bits, on every mesh that the schedule runs on.
template <class Schedule, std::int64_t C>
void triangle_infers_as_forward() {
  using module_type = triangle_multiplication<outgoing, space_of<float>, C, Schedule>;
  for (auto const& sizes : meshes()) {
    if (std::is_same_v<Schedule, cannon> && !is_square(sizes)) continue;
    test_context ctx(world(), sizes, 0, test_options());
    module_type module(ctx);
    each_parameter(module, [](std::string const& name, auto& parameter) {
      fill(parameter, draw_activation, key_of(3, name));
    });
    auto const bound = extents{bind<batch>(2), bind<tokens>(12)};
    typename module_type::X x(ctx, bound);
    typename module_type::Mask mask(ctx, bound);
    fill(x, draw_activation, 5);
    fill(mask, draw_weight_mask, 6);
    auto const expected = module.forward(ctx, x, mask);
    CHECK(bytes_of(module.infer(ctx, x, mask)) == bytes_of(expected.y));
  }
}

}  // namespace dtm::testing
