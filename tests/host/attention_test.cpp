// The fused attention beside its formulas in long double, one score after another: outputs,
// statistics and all gradients, for every set of vector instructions, element type and remainder.
//
// Tolerances, in units of the rounding error e of the accumulating type. A score is a sum of width
// products and two terms, off by (width + 4) e |s|, |s| the sum of the terms' sizes; its exponential
// by that and 2 + |s| e, a probability by twice as much; sums over n keys add n e at most, o is off by
// (n + that) max|v|. Of the gradients in the same way with |do| |v| width in place of v. 16-bit
// results are rounded once more.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "dtm/backend/host/products.hpp"
#include "plain_memory.hpp"
#include "sets.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

using real = long double;
using reals = std::vector<real>;

template <class T>
T to(double x) {
  if constexpr (std::is_same_v<T, bf16>)
    return bf16(float(x));
  else
    return T(x);
}

/// Inputs of a case. A third of all keys is masked in the first row; in the last one, if there are
/// several, all of them, unless scores are so large that something of them would be left.
template <class T>
struct problem {
  using A = accumulate_t<T>;
  local::attention_shape shape;
  A scale;
  bool small;
  std::vector<T> q, k, v, bias, d_o;
  std::vector<A> mask;

  static constexpr double infinity = sizeof(A) == 4 ? 1e9 : 1e18;

  problem(local::attention_shape s, double size, double bias_size)
      : shape(s),
        scale(A(1 / std::sqrt(double(s.width)))),
        small(size * size * std::sqrt(double(s.width)) + bias_size < 30) {
    std::mt19937 random(unsigned(s.width * 1000 + s.keys));
    auto const draw = [&](std::int64_t count, double scaled) {
      std::uniform_real_distribution<double> uniform(-scaled, scaled);
      std::vector<T> values(std::size_t(count), T(0.0f));
      for (auto& value : values) value = to<T>(uniform(random));
      return values;
    };
    std::int64_t const rows = s.batch * s.rows, channels = s.heads * s.width;
    q = draw(rows * s.queries * channels, size);
    k = draw(rows * s.keys * channels, size);
    v = draw(rows * s.keys * channels, 1);
    d_o = draw(rows * s.queries * channels, 1);
    bias = draw(s.batch * s.heads * s.queries * s.keys, bias_size);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t key = 0; key < s.keys; ++key) {
        bool const masked = is_masked(row) || (row == 0 && s.keys > 1 && key % 3 == 1);
        mask.push_back(masked ? A(-infinity) : key % 5 == 4 ? A(-0.5) : A(0));
      }
  }
  bool is_masked(std::int64_t row) const {
    std::int64_t const rows = shape.batch * shape.rows;
    return rows > 1 && row == rows - 1 && small;
  }
  local::attention_input<T> input() const {
    return {shape, scale, q.data(), k.data(), v.data(), bias.data(), mask.data()};
  }
};

/// All results; max and sum have their own places in the comparison.
struct results {
  reals o, max, sum, dq, dk, dv, dbias;
};

/// The formulas; and the largest sum of sizes of a score's terms, masks of keys that have no part
/// left out.
template <class T>
results formulas(problem<T> const& p, real& terms) {
  auto const& s = p.shape;
  std::int64_t const step = s.heads * s.width;
  results r;
  r.o.resize(p.q.size()), r.dq.resize(p.q.size());
  r.dk.resize(p.k.size()), r.dv.resize(p.k.size());
  r.dbias.resize(p.bias.size());
  terms = 1;
  std::vector<real> score(std::size_t(s.keys)), share(std::size_t(s.keys));
  for (std::int64_t row = 0; row < s.batch * s.rows; ++row)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t j = 0; j < s.queries; ++j) {
        std::int64_t const query = (row * s.queries + j) * step + h * s.width;
        std::int64_t const biases = ((row / s.rows * s.heads + h) * s.queries + j) * s.keys;
        auto const key = [&](std::int64_t n) { return (row * s.keys + n) * step + h * s.width; };
        real max = -std::numeric_limits<real>::infinity(), sum = 0;
        for (std::int64_t n = 0; n < s.keys; ++n) {
          real product = 0, size = 0;
          for (std::int64_t c = 0; c < s.width; ++c) {
            real const term =
                real(p.scale) * real(double(p.q[query + c])) * real(double(p.k[key(n) + c]));
            product += term;
            size += std::fabs(term);
          }
          real const mask = p.mask[row * s.keys + n], bias = double(p.bias[biases + n]);
          if (mask > -p.infinity / 2)
            terms = std::max(terms, size + std::fabs(bias) + std::fabs(mask));
          // beside the constant nothing is left of a score
          score[n] = p.is_masked(row) ? mask : (product + mask) + bias;
          max = std::max(max, score[n]);
        }
        for (std::int64_t n = 0; n < s.keys; ++n) sum += share[n] = std::exp(score[n] - max);
        real dl = 0;
        for (std::int64_t n = 0; n < s.keys; ++n) share[n] /= sum;
        for (std::int64_t c = 0; c < s.width; ++c) {
          real o = 0;
          for (std::int64_t n = 0; n < s.keys; ++n) o += share[n] * double(p.v[key(n) + c]);
          r.o[query + c] = o;
          dl += o * double(p.d_o[query + c]);
        }
        r.max.resize(std::size_t(s.batch * s.rows * s.heads * s.queries));
        r.sum.resize(r.max.size());
        r.max[(row * s.heads + h) * s.queries + j] = max;
        r.sum[(row * s.heads + h) * s.queries + j] = sum;
        for (std::int64_t n = 0; n < s.keys; ++n) {
          real dp = 0;
          for (std::int64_t c = 0; c < s.width; ++c)
            dp += real(double(p.d_o[query + c])) * double(p.v[key(n) + c]);
          real const ds = share[n] * (dp - dl);
          r.dbias[biases + n] += ds;
          for (std::int64_t c = 0; c < s.width; ++c) {
            r.dq[query + c] += p.scale * ds * double(p.k[key(n) + c]);
            r.dk[key(n) + c] += p.scale * ds * double(p.q[query + c]);
            r.dv[key(n) + c] += share[n] * double(p.d_o[query + c]);
          }
        }
      }
  return r;
}

template <class T>
reals widened(std::vector<T> const& values) {
  reals result;
  for (T value : values) result.push_back(real(double(value)));
  return result;
}

/// The tile's: keys in so many calls, one after another; backward as well.
template <class T, class Result>
results computed(instruction_set set, problem<T> const& p, std::int64_t parts) {
  using A = accumulate_t<T>;
  auto const& s = p.shape;
  std::size_t const statistics = std::size_t(s.batch * s.rows * s.heads * s.queries);
  Result const unset = to<Result>(std::nan(""));
  std::vector<Result> o(p.q.size(), unset), dq = o, dk(p.k.size(), unset), dv = dk;
  std::vector<A> max(statistics, A(NAN)), sum = max, dbias(p.bias.size(), A(0));
  std::int64_t const step = s.heads * s.width, rows = s.batch * s.rows;

  struct part_of {
    problem<T> of;
    std::int64_t first, count;
  };
  std::vector<part_of> pieces;
  for (std::int64_t i = 0; i < parts; ++i) {
    std::int64_t const first = s.keys * i / parts, count = s.keys * (i + 1) / parts - first;
    part_of piece{p, first, count};
    piece.of.shape.keys = count;
    auto const cut = [&](auto& values, std::int64_t lists, std::int64_t width) {
      auto const all = values;
      values.clear();
      for (std::int64_t l = 0; l < lists; ++l)
        values.insert(values.end(), all.begin() + (l * s.keys + first) * width,
                      all.begin() + (l * s.keys + first + count) * width);
    };
    cut(piece.of.k, rows, step);
    cut(piece.of.v, rows, step);
    cut(piece.of.mask, rows, 1);
    cut(piece.of.bias, s.batch * s.heads * s.queries, 1);
    pieces.push_back(std::move(piece));
  }
  for (auto const& piece : pieces) {
    local::attention_rows<T, Result> const forward{
        piece.of.input(), o.data(), {max.data(), sum.data()}, piece.first > 0};
    local::detail::host_fused(set, forward, testing::plain_memory());
  }
  std::vector<T> kept_o;
  for (Result value : o) kept_o.push_back(to<T>(double(value)));
  for (auto const& piece : pieces) {
    std::size_t const count = std::size_t(rows * piece.count * step);
    std::vector<Result> part_k(count, unset), part_v = part_k;
    std::vector<A> part_bias(piece.of.bias.size(), A(0));
    local::attention_rows_backward<T, Result> backward{
        piece.of.input(), kept_o.data(), {max.data(), sum.data()}, p.d_o.data(), dq.data(),
        part_k.data(),    part_v.data(), part_bias.data(),         false};
    if (piece.first > 0) {  // dq is a sum over the parts; what is added to must be numbers
      backward.add = true;
      std::fill(part_k.begin(), part_k.end(), Result(0.0f));
      std::fill(part_v.begin(), part_v.end(), Result(0.0f));
    }
    local::detail::host_fused(set, backward, testing::plain_memory());
    auto const put = [&](auto const& part, auto& whole, std::int64_t lists, std::int64_t width) {
      for (std::int64_t l = 0; l < lists; ++l)
        std::copy_n(part.begin() + l * piece.count * width, piece.count * width,
                    whole.begin() + (l * s.keys + piece.first) * width);
    };
    put(part_k, dk, rows, step);
    put(part_v, dv, rows, step);
    put(part_bias, dbias, s.batch * s.heads * s.queries, 1);
  }
  return {widened(o),  widened(max), widened(sum),  widened(dq),
          widened(dk), widened(dv),  widened(dbias)};
}

/// Largest errors in units of their tolerances.
struct errors {
  double forward = 0, backward = 0;
  void include(errors const& other) {
    forward = std::max(forward, other.forward);
    backward = std::max(backward, other.backward);
  }
};

double largest_error(reals const& got, reals const& exact) {
  REQUIRE(got.size() == exact.size());
  real worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    real const error = std::fabs(got[i] - exact[i]);
    worst = error <= worst ? worst : error;  // a NaN is the worst
    if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  }
  return double(worst);
}
double largest(reals const& values) {
  real result = 0;
  for (real value : values) result = std::max(result, std::fabs(value));
  return double(result);
}

template <class T, class Result>
errors compare(results const& got, results const& exact, problem<T> const& p, double terms,
               std::int64_t parts) {
  using A = accumulate_t<T>;
  auto const& s = p.shape;
  double const e = std::numeric_limits<A>::epsilon() / 2, n = double(std::max(s.keys, s.queries)),
               width = double(s.width), score = double(s.width + 4) * terms * e,
               share = 2 * (score + (2 + terms) * e) + (n + 8 * double(parts)) * e,
               kept = sizeof(T) == 2 ? 0x1p-8 : e, stored = sizeof(Result) == 2 ? 0x1p-8 : e;
  double const roundings = stored * double(parts);
  double const product =
      width * (2 * share + (n + width) * e + (2 * width + 2) * kept);  // of ds / p
  double const factor = [&] {
    double q = 0;
    for (auto const* values : {&p.q, &p.k})
      for (T value : *values) q = std::max(q, std::fabs(double(value)));
    return q * double(p.scale);
  }();
  // a probability is 1 at most and of one query they sum to 1; of one key, over queries, to n
  double const forward[] = {largest_error(got.o, exact.o) / (share + roundings),
                            largest_error(got.sum, exact.sum) / (n * share)};
  double const queries = double(s.queries), rows = double(s.rows);
  double const backward[] = {
      largest_error(got.dq, exact.dq) / (product * factor + roundings * largest(exact.dq)),
      largest_error(got.dk, exact.dk) /
          (queries * product * factor + roundings * largest(exact.dk)),
      largest_error(got.dv, exact.dv) / (queries * (share + n * e) + roundings * largest(exact.dv)),
      largest_error(got.dbias, exact.dbias) / (rows * product)};
  errors worst;
  for (double error : forward) worst.forward = std::max(worst.forward, error);
  for (double error : backward) worst.backward = std::max(worst.backward, error);
  return worst;
}

template <class T, class Result = T>
void check_sizes(char const* type, double size, double bias_size, std::vector<std::int64_t> counts,
                 std::int64_t parts = 1) {
  std::vector<errors> worst(3);
  for (std::int64_t width : {8, 16, 24, 32, 64, 5})
    for (std::int64_t queries : counts)
      for (std::int64_t keys : counts) {
        if (keys < parts) continue;
        problem<T> const p({width == 8 ? 2 : 1, 2, queries, keys, 2, width}, size, bias_size);
        real terms = 0;
        auto const exact = formulas(p, terms);
        for (instruction_set set : testing::instruction_sets()) {
          auto const error = compare<T, Result>(computed<T, Result>(set, p, parts), exact, p,
                                                double(terms), parts);
          INFO(type << " " << name_of(set) << " width " << width << " queries " << queries
                    << " keys " << keys << " parts " << parts);
          CHECK(error.forward <= 1);
          CHECK(error.backward <= 1);
          worst[std::size_t(set)].include(error);
        }
      }
  for (instruction_set set : testing::instruction_sets())
    std::printf("%s %-8s scores of %g, %d parts: forward %.2g, backward %.2g of the tolerance\n",
                type, name_of(set), size * size + bias_size, int(parts),
                worst[std::size_t(set)].forward, worst[std::size_t(set)].backward);
}

}  // namespace

TEST_CASE("attention is its formulas: fp32") {
  check_sizes<float>("fp32", 1, 1, {1, 17, 33, 100});
}
TEST_CASE("attention is its formulas: fp64") {
  check_sizes<double>("fp64", 1, 1, {1, 17, 33, 100});
}
TEST_CASE("attention is its formulas: bf16") {
  check_sizes<bf16>("bf16", 1, 1, {1, 17, 33, 100});
}
TEST_CASE("attention over several blocks of keys and of queries") {
  check_sizes<float>("fp32", 2, 3, {300});
  check_sizes<double>("fp64", 2, 3, {300});
}
TEST_CASE("huge scores stay finite and right") {
  check_sizes<float>("fp32", 100, 1e4, {33});
  check_sizes<double>("fp64", 100, 1e4, {33});
  check_sizes<bf16>("bf16", 100, 1e4, {33});
}
TEST_CASE("keys in parts, one call after another") {
  check_sizes<float>("fp32", 1, 1, {17, 33}, 3);
  check_sizes<double>("fp64", 1, 1, {33}, 3);
  check_sizes<float>("fp32", 1, 1, {33}, 33);
  check_sizes<bf16, float>("bf16, fp32 between", 1, 1, {33}, 3);
}

TEST_CASE("a row without keys is the mean of its values") {
  problem<float> const p({1, 2, 5, 100, 1, 32}, 1, 1);
  for (instruction_set set : testing::instruction_sets()) {
    auto const got = computed<float, float>(set, p, 1);
    real worst = 0;
    for (std::int64_t c = 0; c < 32; ++c) {
      real mean = 0;
      for (std::int64_t n = 0; n < 100; ++n) mean += p.v[std::size_t((100 + n) * 32 + c)] / 100.0L;
      worst = std::max(worst, std::fabs(mean - got.o[std::size_t(5 * 32 + c)]));
    }
    INFO(name_of(set));
    CHECK(double(worst) <= 100 * 0x1p-24);
    CHECK(got.sum[5] == 100);
  }
}

TEST_CASE("what a mask leaves of the scores is added in the order of the formula") {
  problem<double> p({1, 1, 4, 30, 1, 16}, 1, 1);
  std::fill(p.mask.begin(), p.mask.end(), -1e9);  // a unit in the last place is 1e-7
  for (instruction_set set : testing::instruction_sets()) {
    auto const got = computed<double, double>(set, p, 1);
    double in_order = 0, otherwise = 0;
    for (std::int64_t j = 0; j < 4; ++j) {
      std::vector<double> score[2];
      for (std::int64_t n = 0; n < 30; ++n) {
        real product = 0;
        for (std::int64_t c = 0; c < 16; ++c)
          product += real(p.scale) * p.q[std::size_t(j * 16 + c)] * p.k[std::size_t(n * 16 + c)];
        double const bias = p.bias[std::size_t(j * 30 + n)];
        score[0].push_back((double(product) - 1e9) + bias);
        score[1].push_back((double(product) + bias) - 1e9);
      }
      for (int order : {0, 1}) {
        double const max = *std::max_element(score[order].begin(), score[order].end());
        double sum = 0, o = 0;
        for (std::int64_t n = 0; n < 30; ++n) {
          double const share = std::exp(score[order][std::size_t(n)] - max);
          sum += share;
          o += share * p.v[std::size_t(n * 16)];
        }
        double const error = std::fabs(o / sum - double(got.o[std::size_t(j * 16)]));
        (order == 0 ? in_order : otherwise) = std::max(order == 0 ? in_order : otherwise, error);
      }
    }
    INFO(name_of(set));
    CHECK(in_order <= 100 * 0x1p-53);
    CHECK(otherwise > 1e-9);
  }
}

TEST_CASE("masked keys have no part, whatever they hold") {
  problem<float> p({1, 1, 7, 40, 1, 16}, 1, 1);
  auto const poisoned = [&] {
    auto other = p;
    for (std::int64_t n = 0; n < 40; ++n)
      if (p.mask[std::size_t(n)] < -1)
        for (std::int64_t c = 0; c < 16; ++c) {
          other.k[std::size_t(n * 16 + c)] *= 50;
          other.v[std::size_t(n * 16 + c)] = 1e6f;
        }
    return other;
  }();
  for (instruction_set set : testing::instruction_sets()) {
    auto const got = computed<float, float>(set, p, 1),
               other = computed<float, float>(set, poisoned, 1);
    INFO(name_of(set));
    CHECK((got.o == other.o));
    CHECK((got.dq == other.dq));
    CHECK((got.dbias == other.dbias));
    CHECK_FALSE(largest(got.dbias) == 0);
  }
}

TEST_CASE("a score that is not a number is seen") {
  problem<float> p({1, 1, 3, 40, 1, 16}, 1, 1);
  p.k[20 * 16] = NAN;
  for (instruction_set set : testing::instruction_sets())
    CHECK(std::isnan(double(computed<float, float>(set, p, 1).o[0])));
}

TEST_CASE("no bit depends on the queries and rows that are computed with one") {
  problem<float> const p({1, 3, 37, 300, 2, 32}, 1, 1);
  for (instruction_set set : testing::instruction_sets()) {
    auto const whole = computed<float, float>(set, p, 1);
    std::int64_t differing = 0;
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t j : {0, 5, 11, 12, 23, 24, 36}) {
        problem<float> one = p;
        one.shape.rows = one.shape.queries = 1;
        auto const cut = [&](auto& values, auto const& from, std::int64_t begin,
                             std::int64_t count) {
          values.assign(from.begin() + begin, from.begin() + begin + count);
        };
        cut(one.q, p.q, (row * 37 + j) * 64, 64);
        cut(one.d_o, p.d_o, (row * 37 + j) * 64, 64);
        cut(one.k, p.k, row * 300 * 64, 300 * 64);
        cut(one.v, p.v, row * 300 * 64, 300 * 64);
        cut(one.mask, p.mask, row * 300, 300);
        one.bias.clear();
        for (std::int64_t h = 0; h < 2; ++h)
          one.bias.insert(one.bias.end(), p.bias.begin() + (h * 37 + j) * 300,
                          p.bias.begin() + (h * 37 + j + 1) * 300);
        auto const got = computed<float, float>(set, one, 1);
        for (std::int64_t c = 0; c < 64; ++c) {
          differing += got.o[std::size_t(c)] != whole.o[std::size_t((row * 37 + j) * 64 + c)];
          differing += got.dq[std::size_t(c)] != whole.dq[std::size_t((row * 37 + j) * 64 + c)];
        }
      }
    INFO(name_of(set));
    CHECK(differing == 0);
  }
}
