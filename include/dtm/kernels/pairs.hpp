#pragma once
// Kernels over the pairs of a tile [batch, i, j, channels].

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

/// y[b, j, i, c] = x[b, i, j, c], by elements. Reads 1, writes 1; memory.
template <class T>
struct swap_pair_elements {
  static constexpr int neighbours = vector_length<T>;
  T const* x;
  std::int64_t rows, columns, channels;
  T* y;
  DTM_HD std::int64_t source(std::int64_t index) const {
    std::int64_t const c = index % channels, pair = index / channels, i = pair % rows,
                       j = pair / rows % columns, b = pair / (rows * columns);
    return ((b * rows + i) * columns + j) * channels + c;
  }
  DTM_HD void operator()(std::int64_t index) const { y[index] = x[source(index)]; }
  template <class Block>
  DTM_HD void many(Block& block, std::int64_t index) const {
    block.store(y + index, block.template load<neighbours>(x + source(index)));
  }
  bool may_vector() const { return channels % neighbours == 0 && are_aligned<neighbours>(x, y); }
};

/// The same, an index a pair.
template <class T>
struct swap_pairs {
  T const* x;
  std::int64_t rows, columns, channels;
  T* y;
  DTM_HD void operator()(std::int64_t pair) const {
    std::int64_t const i = pair % rows, j = pair / rows % columns, b = pair / (rows * columns);
    T const* const from = x + ((b * rows + i) * columns + j) * channels;
    for (std::int64_t c = 0; c < channels; ++c) y[pair * channels + c] = from[c];
  }
};

template <class T>
struct device_form<swap_pairs<T>> {
  static auto of(swap_pairs<T> const& k, std::int64_t pairs) {
    using elements = swap_pair_elements<T>;
    return device_form<elements>::of({k.x, k.rows, k.columns, k.channels, k.y}, pairs * k.channels);
  }
};

/// y = infinity (mask - 1): what is added to the scores of a key. Reads 1, writes 1; 2 flops; memory.
template <class T>
struct additive_mask {
  T const* mask;
  accumulate_t<T> infinity;
  accumulate_t<T>* y;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    y[i] = infinity * (A(mask[i]) - A(1));
  }
};

}  // namespace dtm::kernels
