// Layer normalisation, column sums and sums of squares.

#include "contexts.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/kernels/norm.hpp"

namespace dtm::kernel_test {
namespace {

template <class T>
void compare_layer_norm(std::int64_t rows, std::int64_t channels, std::int64_t skew = 0) {
  std::int64_t const n = rows * channels;
  auto const x = numbers<T>(n, 1, 2), gamma = numbers<T>(channels, 2),
             beta = numbers<T>(channels, 3), dy = numbers<T>(n, 4);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    array<Element> in(ctx, x, skew), weight(ctx, gamma), bias(ctx, beta), upstream(ctx, dy, skew),
        y(ctx, n, skew), again(ctx, n, skew), dx(ctx, n, skew);
    array<A> mean(ctx, rows), rstd(ctx, rows),
        dgamma(ctx, std::vector<double>(std::size_t(channels), 0.5)),
        dbeta(ctx, std::vector<double>(std::size_t(channels), 0.25));
    local::layer_norm_forward(ctx, rows, channels, A(1e-5), in.data(), weight.data(), bias.data(),
                              y.data(), mean.data(), rstd.data());
    local::layer_norm_apply(ctx, rows, channels, in.data(), mean.data(), rstd.data(), weight.data(),
                            bias.data(), again.data());
    local::layer_norm_backward(ctx, rows, channels, upstream.data(), in.data(), mean.data(),
                               rstd.data(), weight.data(), dx.data(), dgamma.data(), dbeta.data());
    std::vector<double> results;
    y.add_to(results);
    again.add_to(results);
    mean.add_to(results);
    rstd.add_to(results);
    dx.add_to(results);
    dgamma.add_to(results);
    dbeta.add_to(results);
    return results;
  };
  // Means and variances add `channels` values below 2 with one rounding each; the normalised value
  // is below 4 (rstd below 2 where channels vary, 316 where there is one and x - mean is 0).
  double const r = channels == 1 ? 320 : 2, sums = double(channels) + 8;
  compare<T>(size_text("layer norm", {rows, channels, skew}),
             {{"y", 2 * n, sums, 4},
              {"mean", rows, sums, 2, 0},
              {"rstd", rows, sums, r, 0},
              {"dx", n, 2 * sums, 4 * r},
              {"dgamma", channels, double(rows) + 2 * sums, 4 * double(rows), 0},
              {"dbeta", channels, double(rows) + 4, double(rows), 0}},
             run);
}

TEMPLATE_TEST_CASE("layer normalisation", "", float, double, bf16) {
  for (std::int64_t const channels : {1, 8, 24, 31, 33, 128})
    for (std::int64_t const rows : {1, 33}) compare_layer_norm<TestType>(rows, channels);
  compare_layer_norm<TestType>(33, 128, 1);  // not aligned
  compare_layer_norm<TestType>(3, 384);
  compare_layer_norm<TestType>(2, 1024);
  compare_layer_norm<TestType>(2, 1040);  // wider than a warp holds
  compare_layer_norm<TestType>(600, 8);
  compare_layer_norm<TestType>(300, 33);  // two chunks of rows
}

template <class T>
void compare_sums(std::int64_t rows, std::int64_t columns) {
  std::int64_t const n = rows * columns;
  auto const x = numbers<T>(n, 1);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    array<Element> in(ctx, x);
    array<A> of_columns(ctx, std::vector<double>(std::size_t(columns), 0.5)),
        of_squares(ctx, std::vector<double>{0.25}), factor(ctx, 1), norm(ctx, 1);
    local::add_column_sum(ctx, rows, columns, in.data(), of_columns.data());
    local::sum_of_squares(ctx, n, in.data(), of_squares.data());
    local::for_each(ctx, 1,
                    kernels::clip_factor<A>{A(1), of_squares.data(), factor.data(), norm.data()});
    std::vector<double> results;
    of_columns.add_to(results);
    of_squares.add_to(results);
    factor.add_to(results);
    norm.add_to(results);
    return results;
  };
  // squares of odd numbers end alike, 1 modulo 8: their sum is rounded the same way every time
  double const of_squares = all_of(double(n) + 8);
  compare<T>(size_text("sums", {rows, columns}),
             {{"columns", columns, double(rows), double(rows), 0},
              {"squares", 1, of_squares, own_value, 0},
              {"factor", 1, of_squares, own_value, 0},
              {"norm", 1, of_squares, own_value, 0}},
             run);
}

TEMPLATE_TEST_CASE("sums", "", float, double, bf16) {
  for (std::int64_t const columns : {1, 8, 24, 33, 128})
    for (std::int64_t const rows : {1, 31, 257, 600}) compare_sums<TestType>(rows, columns);
}

TEST_CASE("faults of row kernels show") {
  std::int64_t const rows = 40, channels = 1100;
  auto const norm = [&](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(rows * channels, 1)), w(ctx, numbers<float>(channels, 2)),
        y(ctx, rows * channels), mean(ctx, rows), rstd(ctx, rows), dx(ctx, rows * channels),
        dw(ctx, w.storage.size()), db(ctx, w.storage.size());
    local::for_each(ctx, channels, kernels::set_zero<float>{dw.data()});
    local::for_each(ctx, channels, kernels::set_zero<float>{db.data()});
    local::layer_norm_forward(ctx, rows, channels, 1e-5f, x.data(), w.data(), w.data(), y.data(),
                              mean.data(), rstd.data());
    local::layer_norm_backward(ctx, rows, channels, x.data(), x.data(), mean.data(), rstd.data(),
                               w.data(), dx.data(), dw.data(), db.data());
    for (auto* part : {&y, &mean, &rstd, &dx, &dw, &db}) part->add_to(results);
  };
  auto const columns = [&](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(600 * 33, 1)), sum(ctx, std::vector<double>(33));
    local::add_column_sum(ctx, 600, 33, x.data(), sum.data());
    sum.add_to(results);
  };
  auto const squares = [&](auto& ctx, std::vector<double>& results) {
    array<float> x(ctx, numbers<float>(5000, 1)), sum(ctx, std::vector<double>(1));
    local::sum_of_squares(ctx, 5000, x.data(), sum.data());
    sum.add_to(results);
  };
  CHECK(is_caught({1, -1, false}, norm));
  CHECK(is_caught({2, -1, false}, norm));
  CHECK(is_caught({-1, -1, true}, norm));
  CHECK(is_caught({1, -1, false}, columns));
  CHECK(is_caught({-1, -1, true}, columns));
  CHECK(is_caught({1, -1, false}, squares));
  CHECK(is_caught({-1, -1, true}, squares));
  CHECK_FALSE(is_caught({}, norm));
  CHECK_FALSE(is_caught({}, columns));
  CHECK_FALSE(is_caught({}, squares));
}

}  // namespace
}  // namespace dtm::kernel_test
