// Kernels over the pairs of a tile: rows and columns swapped, additive masks, dropout.

#include "dtm/kernels/pairs.hpp"
#include "contexts.hpp"
#include "dtm/kernels/dropout.hpp"

namespace dtm::kernel_test {
namespace {

struct pair_tile {
  std::int64_t batch, rows, columns, channels;
  std::int64_t pairs() const { return batch * rows * columns; }
  std::int64_t size() const { return pairs() * channels; }
  std::string text(char const* name) const {
    return size_text(name, {batch, rows, columns, channels});
  }
};

template <class T>
void compare_swap(pair_tile const& s) {
  auto const values = numbers<T>(s.size(), 1);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    array<Element> x(ctx, values), y(ctx, s.size());
    local::for_each(
        ctx, s.pairs(),
        kernels::swap_pairs<Element>{x.data(), s.rows, s.columns, s.channels, y.data()});
    std::vector<double> results;
    y.add_to(results);
    return results;
  };
  compare<T>(s.text("swap"), {{"y", s.size(), 0, 0, 0}}, run);
  host_context ctx;
  auto const y = run(ctx, type_is<T>{});
  bool moved = true;
  for (std::int64_t i = 0; i < s.size(); ++i) {
    std::int64_t const ch = i % s.channels, column = i / s.channels % s.columns,
                       row = i / (s.channels * s.columns) % s.rows,
                       b = i / (s.channels * s.columns * s.rows);
    std::int64_t const to = ((b * s.columns + column) * s.rows + row) * s.channels + ch;
    moved = moved && y[std::size_t(to)] == values[std::size_t(i)];
  }
  CHECK(moved);
}

/// Factors of rows or of columns; what is scaled, and what is added to.
template <class T>
void compare_dropout(pair_tile const& s, bool of_columns) {
  std::int64_t const tokens = s.batch * (of_columns ? s.columns : s.rows);
  auto const x = numbers<T>(s.size(), 1), z = numbers<T>(s.size(), 2);
  kernels::dropout_rule const rule{0.25};
  kernels::pair_factor const place{s.rows, s.columns, of_columns};
  box<2> whole{};
  whole.end[0] = s.batch;
  whole.end[1] = tokens / s.batch;
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    array<Element> update(ctx, x), total(ctx, z), scaled(ctx, s.size());
    array<A> uniform(ctx, tokens), drawn(ctx, tokens), factors(ctx, tokens);
    for (std::int64_t i = 0; i < tokens; ++i) uniform.data()[i] = A(double(i % 8) / 8);
    local::for_each(
        ctx, tokens,
        kernels::draw_dropout_factors<A>{kernels::dropout_draw{.seed = 5}.stream(), rule,
                                         kernels::box_walk<2>::of(whole, whole), drawn.data()});
    local::for_each(ctx, tokens,
                    kernels::dropout_factors_of<A>{rule, uniform.data(), factors.data()});
    local::for_each(ctx, s.pairs(),
                    kernels::scale_pairs<Element, true>{
                        {place, s.channels, drawn.data(), update.data(), total.data()}});
    local::for_each(ctx, s.pairs(),
                    kernels::scale_pairs<Element, false>{
                        {place, s.channels, factors.data(), update.data(), scaled.data()}});
    std::vector<double> results;
    drawn.add_to(results);
    factors.add_to(results);
    total.add_to(results);
    scaled.add_to(results);
    return results;
  };
  compare<T>(s.text(of_columns ? "dropout, columns" : "dropout, rows"),
             {{"drawn", tokens, 1, 2, 0},
              {"factors", tokens, 1, 2, 0},
              {"total", s.size(), 4, 4},
              {"scaled", s.size(), 3, 2}},
             run);
}

template <class T>
void compare_masks(std::int64_t count) {
  auto const values = numbers<T>(count, 1);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    array<Element> mask(ctx, values);
    array<A> y(ctx, count);
    local::for_each(ctx, count, kernels::additive_mask<Element>{mask.data(), A(1e4), y.data()});
    std::vector<double> results;
    y.add_to(results);
    return results;
  };
  compare<T>(size_text("additive mask", {count}), {{"y", count, 2, 2e4, 0}}, run);
}

TEMPLATE_TEST_CASE("pairs", "", float, double, bf16) {
  for (pair_tile const& s : {pair_tile{1, 1, 1, 1}, {2, 5, 3, 1}, {1, 33, 7, 24}, {2, 4, 9, 8}}) {
    compare_swap<TestType>(s);
    compare_dropout<TestType>(s, false);
    compare_dropout<TestType>(s, true);
  }
  for (std::int64_t const count : {1, 300}) compare_masks<TestType>(count);
}

TEST_CASE("faults of kernels over pairs show") {
  auto const swap = [](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(40 * 30 * 8, 1)), y(ctx, 40 * 30 * 8);
    local::for_each(ctx, 40 * 30, kernels::swap_pairs<float>{x.data(), 40, 30, 8, y.data()});
    y.add_to(results);
  };
  auto const scale = [](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(40 * 30 * 8, 1)), y(ctx, 40 * 30 * 8),
        factors(ctx, numbers<float>(40, 2));
    local::for_each(ctx, 40 * 30,
                    kernels::scale_pairs<float, false>{
                        {{40, 30, false}, 8, factors.data(), x.data(), y.data()}});
    y.add_to(results);
  };
  CHECK(is_caught({-1, -1, true}, swap));
  CHECK(is_caught({-1, -1, true}, scale));
  CHECK_FALSE(is_caught({}, swap));
  CHECK_FALSE(is_caught({}, scale));
}

}  // namespace
}  // namespace dtm::kernel_test
