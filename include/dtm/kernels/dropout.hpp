#pragma once
// Kernels of dropout: factors of rows or columns, and pairs times factors. An index of the latter is a
// pair; on a device it becomes an element.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/device_form.hpp"
#include "dtm/kernels/random.hpp"

namespace dtm::kernels {

/// 1 / (1 - rate) where a number of [0, 1) is at least `rate`, else 0.
struct dropout_rule {
  double rate;
  template <class A>
  DTM_HD A factor(double uniform) const {
    return uniform >= rate ? A(1 / (1 - rate)) : A(0);
  }
};

/// factors[b, token] of numbers that are drawn by their place in [batch, tokens]. Writes 1; 60 integer
/// operations; arithmetic.
template <class A>
struct draw_dropout_factors {
  random_stream stream;
  dropout_rule rule;
  box_walk<2> walk;
  A* factors;
  DTM_HD void operator()(std::int64_t i) const {
    factors[i] =
        rule.factor<A>(double(uniform<float>::of(stream.at(std::uint64_t(walk.offset(i))))));
  }
};

/// factors of given numbers. Reads 1, writes 1; memory.
template <class A>
struct dropout_factors_of {
  dropout_rule rule;
  A const* uniform;
  A* factors;
  DTM_HD void operator()(std::int64_t i) const { factors[i] = rule.factor<A>(double(uniform[i])); }
};

/// Which factor a pair [b, i, j] takes: that of its row, factors [b, i], or of its column [b, j].
struct pair_factor {
  std::int64_t rows, columns;
  bool of_columns;
  DTM_HD std::int64_t at(std::int64_t pair) const {
    return of_columns ? pair / (rows * columns) * columns + pair % columns : pair / columns;
  }
};

/// y (+)= factor x, by elements. Reads 1 or 2, writes 1; 2 flops; memory.
template <class T, bool Add>
struct scale_pair_elements {
  static constexpr int neighbours = vector_length<T>;
  pair_factor place;
  std::int64_t channels;
  accumulate_t<T> const* factors;
  T const* x;
  T* y;
  DTM_HD static T value(accumulate_t<T> factor, T x, T y) {
    using A = accumulate_t<T>;
    return T(Add ? A(y) + factor * A(x) : factor * A(x));
  }
  DTM_HD void operator()(std::int64_t i) const {
    y[i] = value(factors[place.at(i / channels)], x[i], Add ? y[i] : T(0.0f));
  }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t i) const {
    auto const factor = factors[place.at(i / channels)];
    auto const in = block.template load<neighbours>(x + i);
    vector<T, neighbours> out{};
    if constexpr (Add) out = block.template load<neighbours>(y + i);
    for (int n = 0; n < neighbours; ++n) out[n] = value(factor, in[n], out[n]);
    block.store(y + i, out);
  }
  bool may_vector() const { return channels % neighbours == 0 && are_aligned<neighbours>(x, y); }
};

/// The same, an index a pair.
template <class T, bool Add>
struct scale_pairs {
  scale_pair_elements<T, Add> elements;
  DTM_HD void operator()(std::int64_t pair) const {
    accumulate_t<T> const factor = elements.factors[elements.place.at(pair)];
    for (std::int64_t i = pair * elements.channels; i < (pair + 1) * elements.channels; ++i)
      elements.y[i] =
          scale_pair_elements<T, Add>::value(factor, elements.x[i], Add ? elements.y[i] : T(0.0f));
  }
};

template <class T, bool Add>
struct device_form<scale_pairs<T, Add>> {
  static auto of(scale_pairs<T, Add> const& k, std::int64_t pairs) {
    return device_form<scale_pair_elements<T, Add>>::of(k.elements, pairs * k.elements.channels);
  }
};

}  // namespace dtm::kernels
