#pragma once
// The local parts of an attention of rows as one operation each, as fused_rows.hpp has those of other
// modules: x [batch, rows, n, C] goes in and y comes out, and what lies between is held for a few rows.
// Declared as what they compute; nothing here communicates. A backend that has them says so by
// fused_attended_rows; on the others ops/attended_rows.hpp composes them from single steps.
//
//   u = LN(x) ;  bias planes = u Wb^T                                   norm_to_planes
//   q, k, v, g = u W^T ;  o = attention(q, k, v)  (fused_attention.hpp)
//   y = (o sigmoid(g)) Wo^T                                             attended_rows
//
// and the adjoints of both, in the reverse order: du of the second is completed by the first. Weights
// are [out, in], gradients of parameters are added.

#include <cstdint>

#include "dtm/backend/fused_attention.hpp"
#include "dtm/backend/fused_rows.hpp"

namespace dtm::local {

template <class Device>
struct fused_attended_rows {
  static constexpr bool available = false;
};

/// q, k, v, g [H c, C] and o [C, H c].
template <class T>
struct attention_weights {
  T *q, *k, *v, *g, *o;
};

/// Fills the statistics. planes [batch, count, positions], positions = rows n.
template <class T>
struct norm_to_planes {
  normalised_rows<T> in;
  T const* weight;  // [count, C]
  std::int64_t count;
  accumulate_t<T> eps;
  T* planes;
};

/// dx from du, to which the planes' part is added first.
template <class T>
struct norm_to_planes_backward {
  normalised_rows<T> in;
  T const* weight;
  std::int64_t count;
  accumulate_t<T> const* d_planes;
  accumulate_t<T> const* du;
  T* dx;  // may be du's storage where that is of T
  accumulate_t<T>* gradient;
  norm_gradients<accumulate_t<T>> norm_gradient;
};

/// Some positions of every row ask, others or the same ones are its keys; scores are of
/// q k^T / sqrt(width). y may be x's storage where both are the same: a row is read before it is written.
template <class T>
struct attended_rows {
  normalised_rows<T> in;  // x [batch, rows, queries, C]
  normalised_rows<T>
      keys;  // x [batch, rows, keys, C], the same norm; `in` where queries are the keys
  attention_shape shape;
  attention_weights<T const> weights;
  T const* bias;                // [batch, heads, queries, keys]
  accumulate_t<T> const* mask;  // [batch, rows, keys]
  T* o;  // [batch, rows, queries, H c]; null, as the statistics, where nobody keeps it
  attention_statistics<accumulate_t<T>> statistics;
  T* y;
  bool among_themselves() const { return in.x == keys.x; }
};

/// du and du_keys: what the projections add to the cotangents of u. The first is assigned, and is that of
/// both where queries are the keys; the second is added to.
template <class T>
struct attended_rows_backward {
  normalised_rows<T> in;
  normalised_rows<T> keys;
  attention_shape shape;
  attention_weights<T const> weights;
  T const* bias;
  accumulate_t<T> const* mask;
  T const* o;
  attention_statistics<accumulate_t<T> const> statistics;
  T const* dy;
  accumulate_t<T>* du;
  accumulate_t<T>* du_keys;
  attention_weights<accumulate_t<T>> gradients;
  accumulate_t<T>* dbias;  // added to
  bool among_themselves() const { return in.x == keys.x; }
};

template <class Context, class Operation>
void run_attended(Context& ctx, Operation const& operation) {
  fused_attended_rows<typename Context::device_type>::run(ctx, operation);
}

}  // namespace dtm::local
