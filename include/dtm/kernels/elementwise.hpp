#pragma once
// Element-wise kernels: function objects over an index, plain data members are the arguments.
// Arithmetic is in the accumulation type A; T is storage. No standard containers, no device
// headers (the math functions are found by overload).

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"

namespace dtm::kernels {

template <class A>
DTM_HD inline A sigmoid(A x) {
  using std::exp;
  // no overflow for either sign
  return x >= A(0) ? A(1) / (A(1) + exp(-x)) : exp(x) / (A(1) + exp(x));
}

/// y = 0
template <class T>
struct set_zero {
  T* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = T(0.0f); }
};

/// y = x
template <class From, class To>
struct convert {
  From const* x;
  To* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = To(x[i]); }
};

/// y += x
template <class T>
struct add {
  T const* x;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    y[i] = T(accumulate_t<T>(y[i]) + accumulate_t<T>(x[i]));
  }
};

/// y *= factor
template <class T>
struct scale {
  accumulate_t<T> factor;
  T* y;
  DTM_HD void operator()(std::int64_t i) const { y[i] = T(accumulate_t<T>(y[i]) * factor); }
};

/// y[row, c] += bias[c]
template <class T>
struct add_bias {
  T const* bias;
  std::int64_t channels;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    y[i] = T(accumulate_t<T>(y[i]) + accumulate_t<T>(bias[i % channels]));
  }
};

/// y = x * sigmoid(g)
template <class T>
struct gate {
  T const* x;
  T const* g;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    y[i] = T(A(x[i]) * sigmoid(A(g[i])));
  }
};

/// y = x * sigmoid(g): dx = dy * sigmoid(g), dg = dy * y * (1 - sigmoid(g)). dx may be dy's
/// storage.
template <class T>
struct gate_backward {
  T const* dy;
  T const* x;
  T const* g;
  T* dx;
  T* dg;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    A const upstream = A(dy[i]), open = sigmoid(A(g[i]));
    dg[i] = T(upstream * A(x[i]) * open * (A(1) - open));
    dx[i] = T(upstream * open);
  }
};

/// y[p, c] = x[p, c] * sigmoid(g[p, c]) * mask[p]
template <class T>
struct masked_gate {
  T const* x;
  T const* g;
  T const* mask;
  std::int64_t channels;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    y[i] = T(A(x[i]) * sigmoid(A(g[i])) * A(mask[i / channels]));
  }
};

/// Backward of masked_gate, no gradient to the mask. dx may be dy's storage.
template <class T>
struct masked_gate_backward {
  T const* dy;
  T const* x;
  T const* g;
  T const* mask;
  std::int64_t channels;
  T* dx;
  T* dg;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    A const upstream = A(dy[i]) * A(mask[i / channels]), open = sigmoid(A(g[i]));
    dg[i] = T(upstream * A(x[i]) * open * (A(1) - open));
    dx[i] = T(upstream * open);
  }
};

/// y = silu(h1) * h2
template <class T>
struct swiglu {
  T const* h1;
  T const* h2;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    A const x = A(h1[i]);
    y[i] = T(x * sigmoid(x) * A(h2[i]));
  }
};

/// dh2 = dy * silu(h1), dh1 = dy * h2 * s * (1 + h1 (1 - s))
template <class T>
struct swiglu_backward {
  T const* dy;
  T const* h1;
  T const* h2;
  T* dh1;
  T* dh2;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    A const x = A(h1[i]), other = A(h2[i]), upstream = A(dy[i]), s = sigmoid(x);
    dh1[i] = T(upstream * other * s * (A(1) + x * (A(1) - s)));
    dh2[i] = T(upstream * x * s);
  }
};

/// Copy with permuted dimensions: y is contiguous with `extent`; stride[d] is x's stride of y's
/// dimension d.
template <class T, int Rank>
struct permute {
  T const* x;
  T* y;
  std::int64_t extent[Rank];
  std::int64_t stride[Rank];
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t rest = i, offset = 0;
    for (int d = Rank - 1; d >= 0; --d) {
      offset += rest % extent[d] * stride[d];
      rest /= extent[d];
    }
    y[i] = x[offset];
  }
};

/// z[b, i, j, c] = row[b, i, c] + column[b, j, c]
template <class T>
struct outer_sum {
  T const* row;
  T const* column;
  std::int64_t rows, columns, channels;
  T* z;
  DTM_HD void operator()(std::int64_t index) const {
    using A = accumulate_t<T>;
    std::int64_t const ch = index % channels, j = index / channels % columns,
                       i = index / (channels * columns) % rows,
                       b = index / (channels * columns * rows);
    z[index] =
        T(A(row[(b * rows + i) * channels + ch]) + A(column[(b * columns + j) * channels + ch]));
  }
};

/// z[b, i, j] = row[b, i] * column[b, j]
template <class T>
struct outer_product {
  T const* row;
  T const* column;
  std::int64_t rows, columns;
  T* z;
  DTM_HD void operator()(std::int64_t index) const {
    using A = accumulate_t<T>;
    std::int64_t const j = index % columns, i = index / columns % rows,
                       b = index / (columns * rows);
    z[index] = T(A(row[b * rows + i]) * A(column[b * columns + j]));
  }
};

/// y[outer, inner] = sum over the middle dimension, in index order
template <class T>
struct sum_middle {
  T const* x;
  std::int64_t middle, inner;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    T const* const first = x + i / inner * middle * inner + i % inner;
    A total = A(0);
    for (std::int64_t m = 0; m < middle; ++m) total += A(first[m * inner]);
    y[i] = T(total);
  }
};

}  // namespace dtm::kernels
