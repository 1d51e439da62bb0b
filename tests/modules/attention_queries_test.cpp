// Attention of some queries, a block of rows at a time, beside the same of one row after another: so
// many keys that not all rows are a block, queries in runs, two samples.

#include <cstdint>
#include <cstdio>
#include <vector>

#include "dtm/modules/attention_panels.hpp"
#include "dtm/testing/draw.hpp"
#include "support/backend.hpp"
#include "support/catch.hpp"
#include "support/meshes.hpp"
#include "support/runner.hpp"

using namespace dtm;
using testing::test_context;

namespace {

using T = double;
constexpr std::int64_t batch_size = 2, rows = 5, channels = 8, heads = 2, width = 4, hidden = 8;
// of 12 parts of the positions that are together three rows are a block
constexpr std::int64_t part = local::detail::positions_together<testing::device> / 12;
constexpr position_runs runs{4, part, part / 4, 2};
constexpr std::int64_t keys = runs.count * runs.step, queries = runs.size();

/// Numbers here and on the device.
struct numbers {
  std::vector<T> here;
  scratch<T> there;
  template <class Context>
  numbers(Context& ctx, std::int64_t count, char const* name)
      : here(std::size_t(count)), there(ctx.memory(), count) {
    for (std::size_t i = 0; i < here.size(); ++i)
      here[i] = testing::uniform(testing::key_of(1, name), i);
    ctx.memory().copy_from_host(there.data(), here.data(), here.size() * sizeof(T));
  }
  template <class Context>
  std::vector<T> now(Context& ctx) const {
    std::vector<T> values(here.size());
    ctx.memory().copy_to_host(values.data(), there.data(), values.size() * sizeof(T));
    return values;
  }
  T* operator+(std::int64_t at) { return there.data() + at; }
};

struct arrays {
  numbers x, mean, rstd, gamma, beta, q, k, v, g, o_weight, bias, mask, o, max, sum, y, dy, du,
      dbias, dq, dk, dv, dg, d_o_weight;
  template <class Context>
  explicit arrays(Context& ctx)
      : x(ctx, batch_size * rows * keys * channels, "x"),
        mean(ctx, batch_size * rows * keys, "mean"),
        rstd(ctx, batch_size * rows * keys, "rstd"),
        gamma(ctx, channels, "gamma"),
        beta(ctx, channels, "beta"),
        q(ctx, hidden * channels, "q"),
        k(ctx, hidden * channels, "k"),
        v(ctx, hidden * channels, "v"),
        g(ctx, hidden * channels, "g"),
        o_weight(ctx, hidden * channels, "o_weight"),
        bias(ctx, batch_size * heads * queries * keys, "bias"),
        mask(ctx, batch_size * rows * keys, "mask"),
        o(ctx, batch_size * rows * keys * hidden, "o"),
        max(ctx, batch_size * rows * heads * keys, "max"),
        sum(ctx, batch_size * rows * heads * keys, "sum"),
        y(ctx, batch_size * rows * keys * channels, "y"),
        dy(ctx, batch_size * rows * keys * channels, "dy"),
        du(ctx, batch_size * rows * keys * channels, "du"),
        dbias(ctx, batch_size * heads * queries * keys, "dbias"),
        dq(ctx, hidden * channels, "dq"),
        dk(ctx, hidden * channels, "dk"),
        dv(ctx, hidden * channels, "dv"),
        dg(ctx, hidden * channels, "dg"),
        d_o_weight(ctx, hidden * channels, "d_o_weight") {}

  /// From a row on: so many rows of a sample.
  local::normalised_rows<T> in(std::int64_t row, std::int64_t samples, std::int64_t each) {
    return {x + row * keys * channels,
            samples,
            each * keys,
            channels,
            {gamma + 0, beta + 0},
            {mean + row * keys, rstd + row * keys}};
  }
  local::attended_rows<T> forward(std::int64_t row, std::int64_t sample, std::int64_t samples,
                                  std::int64_t each) {
    auto const all = in(row, samples, each);
    return {all,
            all,
            {samples, each, queries, keys, heads, width},
            {q + 0, k + 0, v + 0, g + 0, o_weight + 0},
            bias + sample * heads * queries * keys,
            mask + row * keys,
            o + row * keys * hidden,
            {max + row * heads * keys, sum + row * heads * keys},
            y + row * keys * channels};
  }
  local::attended_rows_backward<T> backward(std::int64_t row, std::int64_t sample,
                                            std::int64_t samples, std::int64_t each) {
    auto const f = forward(row, sample, samples, each);
    return {f.in,
            f.keys,
            f.shape,
            f.weights,
            f.bias,
            f.mask,
            f.o,
            {f.statistics.max, f.statistics.sum},
            dy + row * keys * channels,
            du + row * keys * channels,
            nullptr,
            {dq + 0, dk + 0, dv + 0, dg + 0, d_o_weight + 0},
            dbias + sample * heads * queries * keys};
  }
};

double largest_difference(std::vector<T> const& a, std::vector<T> const& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("some queries of blocks of rows are those of single rows") {
  test_context ctx(testing::world(), {1, 1, 1});
  arrays together(ctx), apart(ctx);
  CHECK(local::detail::rows_together<testing::device>(
            {batch_size, rows, queries, keys, heads, width}) == 3);
  detail::run_queries(ctx, runs, together.forward(0, 0, batch_size, rows));
  detail::run_queries(ctx, runs, together.backward(0, 0, batch_size, rows));
  for (std::int64_t row = 0; row < batch_size * rows; ++row)
    detail::run_queries(ctx, runs, apart.forward(row, row / rows, 1, 1));
  for (std::int64_t row = 0; row < batch_size * rows; ++row)
    detail::run_queries(ctx, runs, apart.backward(row, row / rows, 1, 1));

  auto const y = together.y.now(ctx), o = together.o.now(ctx);
  CHECK(y == apart.y.now(ctx));
  CHECK(o == apart.o.now(ctx));
  CHECK(together.max.now(ctx) == apart.max.now(ctx));
  CHECK(together.sum.now(ctx) == apart.sum.now(ctx));
  // Other positions keep what they had, and the queries do not.
  for (std::int64_t sequence = 0; sequence < batch_size * rows; ++sequence)
    for (std::int64_t position = 0; position < keys; ++position) {
      std::int64_t const in_part = position % runs.step - runs.first;
      bool const asks = in_part >= 0 && in_part < runs.length;
      std::size_t const at = std::size_t((sequence * keys + position) * channels);
      if ((y[at] == together.y.here[at]) == asks) FAIL("position " << position);
    }

  // Sums over keys and rows, of as many terms in another order.
  double const du = largest_difference(together.du.now(ctx), apart.du.now(ctx)),
               dbias = largest_difference(together.dbias.now(ctx), apart.dbias.now(ctx)),
               dk = largest_difference(together.dk.now(ctx), apart.dk.now(ctx)),
               dv = largest_difference(together.dv.now(ctx), apart.dv.now(ctx)),
               d_o = largest_difference(together.d_o_weight.now(ctx), apart.d_o_weight.now(ctx));
  double const allowed = 1e-12;
  std::printf("some queries: du %.1e, dbias %.1e, dk %.1e, dv %.1e, do %.1e of %.0e\n", du, dbias,
              dk, dv, d_o, allowed);
  for (double const error : {du, dbias, dk, dv, d_o}) CHECK(error <= allowed);
  CHECK(together.dk.now(ctx) != together.dk.here);
  CHECK(together.du.now(ctx) != together.du.here);
}
