// Element-wise kernels, in the form for neighbours and one by one.

#include "dtm/kernels/elementwise.hpp"
#include "contexts.hpp"
#include "dtm/kernels/adam.hpp"

namespace dtm::kernel_test {
namespace {

// The exponential is right to two roundings; a sigmoid is four more.
constexpr double of_sigmoid = 6;

template <class T>
void compare_pointwise(std::int64_t rows, std::int64_t channels, std::int64_t skew) {
  std::int64_t const n = rows * channels;
  auto const x = numbers<T>(n, 1, 4), g = numbers<T>(n, 2, 4), dy = numbers<T>(n, 3),
             bias = numbers<T>(channels, 5);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    std::vector<double> results;
    array<Element> in(ctx, x, skew), by(ctx, g, skew), upstream(ctx, dy, skew),
        shift(ctx, bias, skew);
    array<A> factor(ctx, std::vector<double>{0.375});
    array<Element> first(ctx, n, skew), second(ctx, n, skew);
    auto const each = [&](auto const& kernel) { local::for_each(ctx, n, kernel); };
    auto const keep = [&](auto&... result) { (result.add_to(results), ...); };
    each(kernels::gate<Element>{in.data(), by.data(), first.data()});
    keep(first);
    each(kernels::gate_backward<Element>{upstream.data(), in.data(), by.data(), first.data(),
                                         second.data()});
    keep(first, second);
    each(kernels::swiglu<Element>{in.data(), by.data(), first.data()});
    keep(first);
    each(kernels::swiglu_backward<Element>{upstream.data(), in.data(), by.data(), first.data(),
                                           second.data()});
    keep(first, second);
    each(kernels::set_zero<Element>{second.data()});
    each(kernels::add<Element>{in.data(), second.data()});
    each(kernels::add_bias<Element>{shift.data(), channels, second.data()});
    keep(second);
    each(kernels::scale<Element>{A(0.375), in.data()});
    each(kernels::scale_by<Element>{factor.data(), by.data()});
    keep(in, by);
    array<A> wide(ctx, n, skew);
    each(kernels::convert<Element, A>{by.data(), wide.data()});
    each(kernels::convert<A, Element>{wide.data(), first.data()});
    keep(first);
    return results;
  };
  double const storing = 4;  // swiglu's values reach 16: rounding is relative
  compare<T>(size_text("elementwise", {rows, channels, skew}),
             {{"gate", n, of_sigmoid + 1, 4},
              {"gate'", 2 * n, 2 * of_sigmoid + 4, 4},
              {"swiglu", n, of_sigmoid + 2, 16},
              {"swiglu'", 2 * n, 2 * of_sigmoid + storing + 4, 16},
              {"sum", n, 2, 5, 2},
              {"scaled", 2 * n, 1, 2},
              {"converted", n, 1, 2}},
             run);
}

TEMPLATE_TEST_CASE("element-wise kernels", "", float, double, bf16) {
  for (std::int64_t const channels : {1, 8, 24, 33, 128})
    for (std::int64_t const rows : {1, 31})
      for (std::int64_t const skew : {0, 1}) compare_pointwise<TestType>(rows, channels, skew);
  compare_pointwise<TestType>(257, 33, 0);
}

template <class T>
void compare_adam(std::int64_t n, bool decoupled) {
  auto const p = numbers<T>(n, 1), g1 = numbers<float>(n, 2), g2 = numbers<float>(n, 3);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    constexpr bool has_master = !std::is_same_v<Element, A>;
    array<Element> parameter(ctx, p);
    array<A> master(ctx, p), m(ctx, std::vector<double>(p.size())),
        v(ctx, std::vector<double>(p.size())), rates(ctx, 2);
    array<std::int64_t> step(ctx, std::vector<double>{0});
    for (auto const* gradient : {&g1, &g2}) {
      array<A> g(ctx, *gradient);
      local::for_each(ctx, 1,
                      kernels::adam_rates<A>{step.data(), true, 1e-2, 0.9, 0.999, rates.data()});
      local::for_each(
          ctx, n,
          kernels::adam_update<Element>::of(parameter.data(), has_master ? master.data() : nullptr,
                                            g.data(), m.data(), v.data(), rates.data(), 1e-2, 0.9,
                                            0.999, 1e-8, 1e-2, decoupled));
    }
    std::vector<double> results;
    parameter.add_to(results);
    m.add_to(results);
    v.add_to(results);
    step.add_to(results);
    return results;
  };
  // m / sqrt(v) is of order one; a step changes p by a hundredth of it
  compare<T>(size_text("adam", {n, decoupled}),
             {{"parameter", n, 8, 1}, {"m", n, 8, 1, 0}, {"v", n, 12, 1, 0}, {"step", 1, 0, 0}},
             run);
}

TEMPLATE_TEST_CASE("two steps of Adam", "", float, double, bf16) {
  for (std::int64_t const n : {1, 31, 300})
    for (bool const decoupled : {false, true}) compare_adam<TestType>(n, decoupled);
}

TEST_CASE("philox has the published answers") {
  // kat_vectors of Random123, philox4x32 with 10 rounds
  auto const is = [](kernels::random_words const& got, std::uint32_t a, std::uint32_t b,
                     std::uint32_t c, std::uint32_t d) {
    return got.word[0] == a && got.word[1] == b && got.word[2] == c && got.word[3] == d;
  };
  CHECK(is(kernels::philox({{0, 0, 0, 0}}, 0, 0), 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  CHECK(is(kernels::philox({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u), 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
           0x6d5451fd));
  CHECK(is(
      kernels::philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
      0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
  static_assert(kernels::uniform<float>::of({{0xffffffff, 0, 0, 0}}) == 1 - 0x1p-24f);
  static_assert(kernels::uniform<double>::of({{0xffffffff, 0xffffffff, 0, 0}}) == 1 - 0x1p-53);
  static_assert(kernels::uniform<float>::of({{0, 0, 0, 0}}) == 0);
}

TEMPLATE_TEST_CASE("tiles draw the numbers of the whole", "", float, double, bf16) {
  box<3> const whole{{0, 0, 0}, {3, 5, 8}}, tile{{1, 0, 4}, {3, 5, 8}};
  kernels::random_stream const stream{11, 12, 13};
  auto const draw = [&](auto& ctx, box<3> const& of) {
    array<TestType> y(ctx, of.size());
    local::for_each(
        ctx, of.size(),
        kernels::draw_uniform<TestType, 3>{stream, kernels::box_walk<3>::of(whole, of), y.data()});
    std::vector<double> values;
    y.add_to(values);
    return values;
  };
  host_context on_host;
  emulated_context on_device{{emulation::schedule::shuffled, 1}};
  auto const all = draw(on_host, whole), some = draw(on_host, tile);
  CHECK(draw(on_device, whole) == all);
  CHECK(draw(on_device, tile) == some);
  std::size_t at = 0;
  for (int i = 1; i < 3; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 4; k < 8; ++k) CHECK(some[at++] == all[std::size_t((i * 5 + j) * 8 + k)]);
}

TEST_CASE("uniform numbers fill [0, 1) evenly") {
  kernels::random_stream const stream{1, 2, 3};
  constexpr int count = 1 << 16;
  int bins[16] = {};
  for (int i = 0; i < count; ++i) ++bins[int(16 * kernels::uniform<float>::of(stream.at(i)))];
  double square = 0;  // chi squared with 15 degrees of freedom: above 45 once in 15 000 seeds
  for (int const bin : bins) square += (bin - count / 16.) * (bin - count / 16.) / (count / 16.);
  CHECK(square < 45);
}

TEST_CASE("faults of element-wise kernels show") {
  auto const run = [](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(1500, 1)), y(ctx, numbers<float>(1500, 2));
    local::for_each(ctx, 1500, kernels::add<float>{x.data(), y.data()});
    y.add_to(results);
  };
  CHECK(is_caught({-1, -1, true}, run));
  CHECK_FALSE(is_caught({}, run));
}

}  // namespace
}  // namespace dtm::kernel_test
