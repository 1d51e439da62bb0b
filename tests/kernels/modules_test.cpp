// Kernels that belong to one module: distogram loss, relative positions.

#include "contexts.hpp"
#include "dtm/kernels/arrangement.hpp"
#include "dtm/kernels/distogram_loss.hpp"
#include "dtm/kernels/relative_position.hpp"

namespace dtm::kernel_test {
namespace {

struct loss_case {
  std::int64_t batch, rows, columns, first_row, first_column, distograms, conformers, bins;
  bool aggregate;
  std::int64_t effective() const { return aggregate ? 1 : conformers; }
  std::int64_t terms() const { return 1 + effective() * distograms; }
};

template <class T>
std::vector<double> magnitudes(std::int64_t count, std::uint32_t draw) {
  auto values = numbers<T>(count, draw);
  for (double& value : values) value = std::abs(value);
  return values;
}

/// Everything the loss and its gradient launch, in the order of the module.
template <class Element, class Context>
std::vector<double> run_loss(Context& ctx, loss_case const& s, std::vector<double> const& logits,
                             std::vector<double> const& targets,
                             std::vector<double> const& row_mask,
                             std::vector<double> const& column_mask) {
  using A = accumulate_t<Element>;
  std::int64_t const pairs = s.batch * s.rows * s.columns, K = s.effective();
  array<Element> pred(ctx, logits), target(ctx, targets), rows(ctx, row_mask),
      columns(ctx, column_mask), dpred(ctx, pairs * s.distograms * s.bins);
  array<A> row_terms(ctx, s.batch * s.rows * s.terms()), totals(ctx, s.batch * s.terms()),
      denominator(ctx, s.batch), batch_loss(ctx, s.batch), loss(ctx, 1), weight(ctx, s.batch * K),
      d_loss(ctx, std::vector<double>{1.5}), d_batch(ctx, numbers<bf16>(s.batch, 9));
  array<std::int64_t> attaining(ctx, s.batch * K);
  kernels::distogram_target<Element> const of{target.data(), s.conformers, s.bins, s.aggregate};
  local::for_each(ctx, s.batch * s.rows,
                  kernels::distogram_row_terms<Element>{
                      pred.data(), of, rows.data(), columns.data(), s.rows, s.columns, s.first_row,
                      s.first_column, s.distograms, K, row_terms.data()});
  local::for_each(ctx, s.batch * s.terms(),
                  kernels::sum_middle<A>{row_terms.data(), s.rows, s.terms(), totals.data()});
  local::for_each(ctx, s.batch,
                  kernels::distogram_finish<A>{totals.data(), s.distograms, K, denominator.data(),
                                               attaining.data(), batch_loss.data()});
  local::for_each(ctx, 1,
                  kernels::sum_in_order<A>{batch_loss.data(), s.batch, A(s.batch), loss.data()});
  local::for_each(ctx, s.batch * K,
                  kernels::distogram_weights<A>{d_loss.data(), d_batch.data(), denominator.data(),
                                                s.batch, K, weight.data()});
  local::for_each(
      ctx, pairs,
      kernels::distogram_loss_backward<Element>{
          pred.data(), of, rows.data(), columns.data(), s.rows, s.columns, s.first_row,
          s.first_column, s.distograms, K, weight.data(), attaining.data(), dpred.data()});
  std::vector<double> results;
  row_terms.add_to(results);
  totals.add_to(results);
  attaining.add_to(results);
  batch_loss.add_to(results);
  loss.add_to(results);
  weight.add_to(results);
  dpred.add_to(results);
  return results;
}

template <class T>
void compare_loss(loss_case const& s) {
  std::int64_t const pairs = s.batch * s.rows * s.columns, K = s.effective();
  auto const logits = numbers<T>(pairs * s.distograms * s.bins, 1, 4),
             targets = magnitudes<T>(pairs * s.conformers * s.bins, 2);
  auto row_mask = magnitudes<bf16>(s.batch * s.rows, 3),
       column_mask = magnitudes<bf16>(s.batch * s.columns, 4);
  if (s.rows > 2) row_mask[1] = 0;
  if (s.columns > 2) column_mask[2] = 0;
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    return run_loss<Element>(ctx, s, logits, targets, row_mask, column_mask);
  };
  // A pair adds `bins` terms, of all conformers where they are added up before they are scaled.
  // Entropies are positive: their sums are as large as their terms.
  double const bins = double(s.bins), conformers = double(s.conformers),
               of_row = conformers * bins + 12 + double(s.columns),
               of_sample = of_row + double(s.rows);
  double least = INFINITY;  // the smallest sum of masks, which everything is divided by
  for (std::int64_t b = 0; b < s.batch; ++b) {
    double total = 1e-5;
    for (std::int64_t i = 0; i < s.rows; ++i)
      for (std::int64_t j = 0; j < s.columns; ++j)
        if (s.first_row + i != s.first_column + j)
          total +=
              row_mask[std::size_t(b * s.rows + i)] * column_mask[std::size_t(b * s.columns + j)];
    least = std::min(least, total);
  }
  double const weight_size = 2.5 / least;
  compare<T>(size_text("distogram", {s.batch, s.rows, s.columns, s.distograms, s.conformers, s.bins,
                                     s.aggregate}),
             {{"row terms", s.batch * s.rows * s.terms(), of_row, own_value, 0},
              {"totals", s.batch * s.terms(), of_sample, own_value, 0},
              {"attaining", s.batch * K, 0, 0, 0},
              {"losses", s.batch + 1, 2 * of_sample, own_value, 0},
              {"weights", s.batch * K, of_sample, weight_size, 0},
              {"dpred", pairs * s.distograms * s.bins, 2 * of_sample,
               weight_size * double(K) * (bins * conformers + 1)}},
             run);
}

TEMPLATE_TEST_CASE("distogram loss", "", float, double, bf16) {
  compare_loss<TestType>({1, 1, 1, 0, 1, 1, 1, 1, true});
  compare_loss<TestType>({2, 5, 7, 0, 0, 1, 2, 64, true});
  compare_loss<TestType>({2, 7, 5, 4, 0, 1, 1, 33, false});
  compare_loss<TestType>({1, 3, 9, 0, 3, 2, 3, 24, false});
  compare_loss<TestType>({1, 2, 3, 5, 0, 1, 1, 130, true});  // more bins than registers hold
  compare_loss<TestType>({1, 2, 3, 5, 0, 5, 14, 8, false});  // more terms than a pass has
}

// ---- relative positions ----

std::vector<double> features(std::int64_t count, std::uint32_t draw, bool cyclic) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    auto const words = kernels::random_stream{3, draw, 0}.at(std::uint64_t(i));
    auto const& w = words.word;
    double const of_chain = w[0] % 3;
    for (double const value : {of_chain, double(w[1] % 100), double(w[0] % 2), double(i),
                               double(w[2] % 4), cyclic && i % 5 == 3 ? 12. : 0.})
      values.push_back(value);
  }
  return values;
}

template <class T>
void compare_positions(std::int64_t rows, std::int64_t columns, std::int64_t r_max,
                       std::int64_t channels, bool cyclic) {
  std::int64_t const batch = 2, pairs = batch * rows * columns, s_max = 2,
                     width = 2 * (2 * r_max + 2) + 1 + 2 * s_max + 2;
  auto const row = features(batch * rows, 1, cyclic), column = features(batch * columns, 2, cyclic);
  auto const weights = numbers<T>(width * channels, 3), upstream = numbers<T>(pairs * channels, 4);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using A = accumulate_t<Element>;
    array<std::int64_t> of_rows(ctx, row), of_columns(ctx, column);
    array<std::int32_t> selected(ctx, pairs * 4), flag(ctx, 1);
    array<Element> weight(ctx, weights), z(ctx, pairs * channels), dz(ctx, upstream);
    array<A> gradient(ctx, std::vector<double>(std::size_t(width * channels), 0.5));
    local::for_each(ctx, 1,
                    kernels::any_positive{of_columns.data() + 5, batch * columns, 6, flag.data()});
    kernels::relative_position_columns select{
        of_rows.data(), of_columns.data(), rows,       columns, r_max, s_max, true,
        true,           selected.data(),   flag.data()};
    local::for_each(ctx, pairs, select);
    local::for_each(ctx, pairs * channels,
                    kernels::add_selected_columns<Element>{selected.data(), weight.data(), width,
                                                           channels, z.data()});
    local::add_selected_columns_gradient(ctx, pairs, width, channels, selected.data(), dz.data(),
                                         gradient.data());
    std::vector<double> results;
    flag.add_to(results);
    selected.add_to(results);
    z.add_to(results);
    gradient.add_to(results);
    return results;
  };
  compare<T>(size_text("positions", {rows, columns, r_max, channels, cyclic}),
             {{"flag", 1, 0, 0, 0},
              {"columns", pairs * 4, 0, 0, 0},
              {"z", pairs * channels, 3, 4},
              {"gradient", width * channels, double(pairs) + 1, double(pairs), 0}},
             run);
}

TEMPLATE_TEST_CASE("relative positions", "", float, double, bf16) {
  for (bool const cyclic : {false, true}) {
    compare_positions<TestType>(1, 1, 2, 1, cyclic);
    compare_positions<TestType>(5, 7, 32, 24, cyclic);
    compare_positions<TestType>(7, 31, 32, 128, cyclic);
  }
  compare_positions<TestType>(3, 5, 80, 33, true);  // a weight wider than shared memory holds
}

TEST_CASE("faults of the modules' kernels show") {
  loss_case const s{2, 5, 20, 0, 0, 1, 1, 64, false};
  std::int64_t const pairs = s.batch * s.rows * s.columns;
  auto const loss = [&](auto& ctx, std::vector<double>& results) {
    results = run_loss<float>(
        ctx, s, numbers<float>(pairs * s.bins, 1), magnitudes<float>(pairs * s.bins, 2),
        magnitudes<float>(s.batch * s.rows, 3), magnitudes<float>(s.batch * s.columns, 4));
  };
  auto const positions = [](auto& ctx, std::vector<double>& results) {
    array<std::int64_t> row(ctx, features(10, 1, true));
    array<std::int32_t> selected(ctx, 400);
    array<float> dz(ctx, numbers<float>(100 * 40, 1)), gradient(ctx, std::vector<double>(139 * 40));
    local::for_each(ctx, 100,
                    kernels::relative_position_columns{row.data(), row.data(), 10, 10, 32, 2, true,
                                                       true, selected.data()});
    local::add_selected_columns_gradient(ctx, 100, 139, 40, selected.data(), dz.data(),
                                         gradient.data());
    gradient.add_to(results);
  };
  CHECK(is_caught({0, -1, false}, loss));
  CHECK(is_caught({-1, 0, false}, loss));
  CHECK(is_caught({-1, -1, true}, loss));
  CHECK(is_caught({0, -1, false}, positions));
  CHECK(is_caught({-1, -1, true}, positions));
  CHECK_FALSE(is_caught({}, loss));
  CHECK_FALSE(is_caught({}, positions));
}

}  // namespace
}  // namespace dtm::kernel_test
