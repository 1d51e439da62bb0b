#pragma once
// Attention of many rows at once, with an additive bias that all rows share: softmax(q k^T + mask +
// bias) v, without a matrix of scores in memory. A backend that has it specialises fused_attention.
// Nothing here communicates; sums are of A = accumulate_t<T>, a 16-bit T is storage alone.
//
//   s[i,h,j,k'] = (scale q[i,j,h] . k[i,k',h] + mask[i,k']) + bias[h,j,k']     in this order
//   max = max over k' of s ;  p = exp(s - max) ;  sum = sum over k' of p ;  o = (p / sum) v
//
//   dl = do . o ;  dp = do . v ;  ds = (p / sum) (dp - dl) ;  dbias += sum over i of ds
//   dq = scale ds k ;  dk = scale ds^T q ;  dv = (p / sum)^T do
//
// Statistics of a softmax are its maximum and its sum, which is at least 1: they are kept apart, for
// beside a maximum of -1e9 nothing would be left of the sum's logarithm. Masks and biases are finite.
// A row whose keys are all masked by a constant beyond the precision of A is the mean of its values.

#include <cstdint>

#include "dtm/core/element.hpp"

namespace dtm::local {

/// A backend that has the operations below specialises it: `available`, and run(ctx, operation).
template <class Device>
struct fused_attention {
  static constexpr bool available = false;
};

/// Samples, rows of a sample, queries and keys of a row, at least one; width: channels of a head.
struct attention_shape {
  std::int64_t batch, rows, queries, keys, heads, width;
};

/// Maximum and sum of every softmax, [batch, rows, heads, queries].
template <class A>
struct attention_statistics {
  A* max;
  A* sum;
};

/// What scores are computed from; mask is inf (M - 1).
template <class T>
struct attention_input {
  attention_shape shape;
  accumulate_t<T> scale;
  T const* q;                   // [batch, rows, queries, heads, width]
  T const* k;                   // [batch, rows, keys, heads, width]
  T const* v;                   // [batch, rows, keys, heads, width]
  T const* bias;                // [batch, heads, queries, keys]
  accumulate_t<T> const* mask;  // [batch, rows, keys]
};

/// o and its statistics. With `continues` they are read first: of the keys that were there before,
/// as another call left them, and then are of all keys. Result is T, or accumulate_t<T> where what a
/// call leaves is not to be rounded.
template <class T, class Result = T>
struct attention_rows {
  attention_input<T> in;
  Result* o;  // [batch, rows, queries, heads, width]
  attention_statistics<accumulate_t<T>> statistics;
  bool continues;
};

/// From o and statistics of all keys. dbias is added to, dq, dk and dv are with `add`: of several
/// calls for different keys, dq and dbias are sums, dk and dv are parts.
template <class T, class Result = T>
struct attention_rows_backward {
  attention_input<T> in;
  T const* o;  // as of forward
  attention_statistics<accumulate_t<T> const> statistics;
  T const* d_o;            // as o
  Result* dq;              // as q
  Result* dk;              // as k
  Result* dv;              // as v
  accumulate_t<T>* dbias;  // as bias
  bool add;
};

/// Either of them, on the context's device.
template <class Context, class Operation>
void run_attention(Context& ctx, Operation const& operation) {
  fused_attention<typename Context::device_type>::run(ctx, operation);
}

}  // namespace dtm::local
