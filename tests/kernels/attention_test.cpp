// Attention of rows, forward and backward: tiles on the matrix units, and plain ones.
//
// Bounds, in roundings of the accumulation type. A score is a sum of width products and two terms, off
// by the roundings of that many of the size of all terms together; a probability by twice as much, its
// exponential and a sum over keys. What is summed over probabilities is as large as they are together:
// of a query 1, of a key (over queries) and of a pair (over rows) what a plain softmax says. On the
// matrix units probabilities and cotangents of scores are rounded to bf16 on their way into a product,
// and o, which do . o is formed of, is a result of type T.

#include "contexts.hpp"
#include "dtm/backend/host/fused_attention.hpp"

namespace dtm::kernel_test {
namespace {

/// q and k are up to `size`, the bias up to `bias_size`; keys come in `parts` calls. Of the first row
/// every third key is masked, of the last one, where `empty_row` says so, every key.
struct attention_case {
  local::attention_shape shape;
  double size = 1, bias_size = 1;
  std::int64_t parts = 1, skew = 0;
  bool empty_row = false;

  std::int64_t step() const { return shape.heads * shape.width; }
  std::int64_t sequences() const { return shape.batch * shape.rows; }
  std::int64_t of_queries() const { return sequences() * shape.queries * step(); }
  std::int64_t of_keys() const { return sequences() * shape.keys * step(); }
  std::int64_t bias_rows() const { return shape.batch * shape.heads * shape.queries; }
  std::int64_t softmaxes() const { return sequences() * shape.heads * shape.queries; }
  bool is_empty(std::int64_t sequence) const { return empty_row && sequence + 1 == sequences(); }
  double scale() const { return 1 / std::sqrt(double(shape.width)); }
  std::int64_t first_key(std::int64_t part) const { return shape.keys * part / parts; }
};

/// Beside the constant nothing is left of a score.
template <class A>
std::vector<double> masks(attention_case const& c) {
  double const infinity = sizeof(A) == 4 ? 1e9 : 1e18;
  std::vector<double> values;
  for (std::int64_t sequence = 0; sequence < c.sequences(); ++sequence)
    for (std::int64_t key = 0; key < c.shape.keys; ++key) {
      bool const masked =
          c.is_empty(sequence) || (sequence == 0 && key % 3 == 1 && c.shape.keys > 1);
      values.push_back(masked ? -infinity : key % 5 == 4 ? -0.5 : 0);
    }
  return values;
}

struct attention_numbers {
  std::vector<double> q, k, v, bias, d_o, d_bias;
  template <class T>
  static attention_numbers of(attention_case const& c) {
    std::int64_t const biases = c.bias_rows() * c.shape.keys;
    return {numbers<T>(c.of_queries(), 1, c.size),
            numbers<T>(c.of_keys(), 2, c.size),
            numbers<T>(c.of_keys(), 3),
            numbers<T>(biases, 4, c.bias_size),
            numbers<T>(c.of_queries(), 5),
            numbers<bf16>(biases, 6)};
  }
};

/// Keys [first, end) of every list of all keys, `width` numbers each.
std::vector<double> cut_keys(attention_case const& c, std::vector<double> const& all,
                             std::int64_t width, std::int64_t first, std::int64_t end) {
  std::vector<double> result;
  for (std::int64_t at = 0; at < std::int64_t(all.size()); at += c.shape.keys * width)
    result.insert(result.end(), all.begin() + at + first * width, all.begin() + at + end * width);
  return result;
}
void put_keys(attention_case const& c, std::vector<double> const& part, std::int64_t width,
              std::int64_t first, std::int64_t end, std::vector<double>& all) {
  auto from = part.begin();
  for (std::int64_t at = 0; at < std::int64_t(all.size()); at += c.shape.keys * width) {
    std::copy_n(from, (end - first) * width, all.begin() + at + first * width);
    from += (end - first) * width;
  }
}
template <class T>
std::vector<double> content(array<T>& of) {
  std::vector<double> values;
  of.add_to(values);
  return values;
}

/// The keys of one call.
template <class T>
struct key_part {
  using A = accumulate_t<T>;
  attention_case const& of;
  std::int64_t first, end;
  array<T> k, v, bias;
  array<A> mask;

  template <class Context>
  key_part(Context& ctx, attention_case const& c, attention_numbers const& n, std::int64_t part)
      : of(c),
        first(c.first_key(part)),
        end(c.first_key(part + 1)),
        k(ctx, cut_keys(c, n.k, c.step(), first, end), c.skew),
        v(ctx, cut_keys(c, n.v, c.step(), first, end), c.skew),
        bias(ctx, cut_keys(c, n.bias, 1, first, end), c.skew),
        mask(ctx, cut_keys(c, masks<A>(c), 1, first, end)) {}
  local::attention_input<T> input(array<T>& q) {
    auto shape = of.shape;
    shape.keys = end - first;
    return {shape, A(of.scale()), q.data(), k.data(), v.data(), bias.data(), mask.data()};
  }
};

/// o, max, sum, dq, dk, dv, dbias.
template <class T, class Result, class Context>
std::vector<double> run_attention_case(Context& ctx, attention_case const& c,
                                       attention_numbers const& n) {
  using A = accumulate_t<T>;
  array<T> q(ctx, n.q, c.skew), d_o(ctx, n.d_o, c.skew);
  array<Result> o(ctx, c.of_queries(), c.skew), dq(ctx, c.of_queries(), c.skew);
  array<A> max(ctx, c.softmaxes()), sum(ctx, c.softmaxes());
  for (std::int64_t part = 0; part < c.parts; ++part) {
    key_part<T> keys(ctx, c, n, part);
    local::run_attention(ctx, local::attention_rows<T, Result>{
                                  keys.input(q), o.data(), {max.data(), sum.data()}, part > 0});
  }
  array<T> kept(ctx, content(o), c.skew);
  std::vector<double> dk(n.k.size()), dv(n.v.size()), d_bias(n.bias.size());
  for (std::int64_t part = 0; part < c.parts; ++part) {
    key_part<T> keys(ctx, c, n, part);
    std::vector<double> const zeros(std::size_t(keys.k.storage.size() - c.skew));
    array<Result> of_k(ctx, zeros, c.skew), of_v(ctx, zeros, c.skew);
    array<A> of_bias(ctx, cut_keys(c, n.d_bias, 1, keys.first, keys.end));
    local::run_attention(ctx, local::attention_rows_backward<T, Result>{keys.input(q),
                                                                        kept.data(),
                                                                        {max.data(), sum.data()},
                                                                        d_o.data(),
                                                                        dq.data(),
                                                                        of_k.data(),
                                                                        of_v.data(),
                                                                        of_bias.data(),
                                                                        part > 0});
    put_keys(c, content(of_k), c.step(), keys.first, keys.end, dk);
    put_keys(c, content(of_v), c.step(), keys.first, keys.end, dv);
    put_keys(c, content(of_bias), 1, keys.first, keys.end, d_bias);
  }
  auto results = content(o), of_max = content(max);
  for (std::size_t i = 0; i < of_max.size(); ++i)  // of an empty row: the constant, by its type
    if (c.is_empty(std::int64_t(i) / (c.shape.heads * c.shape.queries))) of_max[i] = 0;
  for (auto const& more : {of_max, content(sum), content(dq), dk, dv, d_bias})
    results.insert(results.end(), more.begin(), more.end());
  return results;
}

/// The largest sums of probabilities: of a key over queries, of a pair over rows.
struct probability_sums {
  double of_key = 0, of_pair = 0;
};
probability_sums plain_softmax(attention_case const& c, attention_numbers const& n) {
  auto const& s = c.shape;
  auto const mask = masks<double>(c);
  std::vector<double> of_key(std::size_t(c.sequences() * s.heads * s.keys)),
      of_pair(std::size_t(c.bias_rows() * s.keys)), score(std::size_t(s.keys));
  for (std::int64_t sequence = 0; sequence < c.sequences(); ++sequence)
    for (std::int64_t head = 0; head < s.heads; ++head)
      for (std::int64_t j = 0; j < s.queries; ++j) {
        std::int64_t const pairs = ((sequence / s.rows * s.heads + head) * s.queries + j) * s.keys;
        double max = -INFINITY, sum = 0;
        for (std::int64_t k = 0; k < s.keys; ++k) {
          double product = 0;
          for (std::int64_t e = head * s.width; e < (head + 1) * s.width; ++e)
            product += n.q[std::size_t((sequence * s.queries + j) * c.step() + e)] *
                       n.k[std::size_t((sequence * s.keys + k) * c.step() + e)];
          score[std::size_t(k)] = (c.scale() * product + mask[std::size_t(sequence * s.keys + k)]) +
                                  n.bias[std::size_t(pairs + k)];
          max = std::max(max, score[std::size_t(k)]);
        }
        for (double& value : score) sum += value = std::exp(value - max);
        for (std::int64_t k = 0; k < s.keys; ++k) {
          double const p = score[std::size_t(k)] / sum;
          of_key[std::size_t((sequence * s.heads + head) * s.keys + k)] += p;
          of_pair[std::size_t(pairs + k)] += p;
        }
      }
  return {*std::max_element(of_key.begin(), of_key.end()),
          *std::max_element(of_pair.begin(), of_pair.end())};
}

/// Results in T, or in its accumulation type.
template <class T, bool Wide = false>
void compare_attention(attention_case const& c) {
  auto const& s = c.shape;
  auto const n = attention_numbers::of<T>(c);
  auto const run = [&]<class Element>(auto& ctx, type_is<Element>) {
    using Result = std::conditional_t<Wide, accumulate_t<Element>, Element>;
    return run_attention_case<Element, Result>(ctx, c, n);
  };
  double const width = double(s.width),
               terms = c.size * c.size * std::sqrt(width) + c.bias_size + 0.5,
               score = effective(width + 4) * terms,
               share = 2 * (score + terms + 2) + effective(double(s.keys)) + 8 * double(c.parts),
               cotangent = 2 * share + effective(width);
  auto const sums = plain_softmax(c, n);
  double const ds = 2 * width, factor = ds * c.scale() * c.size;  // |do| |v| width, and do . o
  std::int64_t const keys = c.of_keys();
  compare<T>(
      size_text("attention",
                {s.batch, s.rows, s.queries, s.keys, s.heads, s.width, c.parts, c.skew}),
      {{"o", c.of_queries(), all_of(share), 1, 2},
       {"max", c.softmaxes(), all_of(score), terms, 0},
       {"sum", c.softmaxes(), all_of(share), own_value, 0},
       {"dq", c.of_queries(), all_of(cotangent + effective(double(s.keys))), factor, 2.5},
       {"dk", keys, all_of(cotangent + effective(double(s.queries))), factor * sums.of_key, 2.5},
       {"dv", keys, all_of(share + effective(double(s.queries))), sums.of_key, 2},
       {"dbias", c.bias_rows() * s.keys, all_of(cotangent + effective(double(s.rows))),
        ds * sums.of_pair + 1, 1.5}},
      run);
}

TEMPLATE_TEST_CASE("attention", "", float, double, bf16) {
  //                batch, rows, queries, keys, heads, width
  compare_attention<TestType>({{1, 1, 1, 1, 1, 8}});
  compare_attention<TestType>({{2, 1, 17, 1, 2, 8}});
  compare_attention<TestType>({{1, 2, 1, 33, 1, 16}});
  compare_attention<TestType>({{1, 3, 17, 33, 2, 24}});
  compare_attention<TestType>({{2, 3, 33, 17, 1, 32}});
  compare_attention<TestType>({{1, 2, 33, 18, 1, 5}});
  compare_attention<TestType>({{1, 1, 16, 34, 2, 64}});
}
TEMPLATE_TEST_CASE("attention in several blocks of queries and keys", "", float, double, bf16) {
  compare_attention<TestType>({{1, 2, 70, 130, 1, 32}});
  compare_attention<TestType>({{1, 1, 130, 70, 1, 40}});
}
TEMPLATE_TEST_CASE("attention of what is not aligned", "", float, double, bf16) {
  compare_attention<TestType>({.shape = {1, 2, 17, 18, 1, 32}, .skew = 1});
}
TEMPLATE_TEST_CASE("scores of 1e4 and more", "", float, double, bf16) {
  compare_attention<TestType>({{1, 2, 17, 33, 1, 32}, 100, 1e4});
}
TEMPLATE_TEST_CASE("a row without a key is the mean of its values", "", float, double, bf16) {
  compare_attention<TestType>({.shape = {1, 2, 9, 33, 1, 16}, .empty_row = true});
}
TEMPLATE_TEST_CASE("keys in several calls", "", float, double, bf16) {
  compare_attention<TestType, true>({.shape = {1, 3, 17, 33, 1, 32}, .parts = 3});
  compare_attention<TestType, true>({.shape = {1, 1, 5, 7, 1, 24}, .parts = 7, .empty_row = true});
}

TEST_CASE("faults of attention show") {
  auto const attend = []<class T>(type_is<T>) {
    attention_case const c{{1, 2, 17, 70, 1, 16}};
    return [c, n = attention_numbers::of<T>(c)](auto& ctx, std::vector<double>& results) {
      results = run_attention_case<T, T>(ctx, c, n);
    };
  };
  auto const plain = attend(type_is<float>{});
  auto const mma = attend(type_is<bf16>{});
  for (int const barrier : {1, 2, 3}) {  // nothing has been read before the first one
    CHECK(is_caught({barrier, -1, false}, plain));
    CHECK(is_caught({barrier, -1, false}, mma));
  }
  for (int const barrier : {1, 2, 3}) CHECK(is_caught({-1, barrier, false}, plain));
  CHECK(is_caught({-1, -1, true}, plain));
  CHECK(is_caught({-1, -1, true}, mma));
  CHECK_FALSE(is_caught({}, plain));
  CHECK_FALSE(is_caught({}, mma));
}

TEST_CASE("a head of more channels than a device has registers for is refused") {
  emulated_context ctx{{emulation::schedule::ascending, 1}};
  attention_case const c{{1, 1, 1, 1, 1, 65}};
  try {
    run_attention_case<float, float>(ctx, c, attention_numbers::of<float>(c));
    FAIL("65 channels were taken");
  } catch (argument_error const& refused) {
    CHECK(std::string(refused.what()).find("a head has 65 channels") != std::string::npos);
  }
}

}  // namespace
}  // namespace dtm::kernel_test
