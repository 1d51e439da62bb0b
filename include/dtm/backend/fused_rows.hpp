#pragma once
// Row-wise parts of modules as one local operation each: a backend that has them reads its input
// once, keeps a tile of rows in its caches and writes the result; on the others ops/ composes them from
// single steps. Declared as what they compute; nothing here communicates. Matrices are row-major,
// weights [out, in]. Sums are of accumulate_t; gradients of parameters are added.

#include <cstdint>

#include "dtm/core/element.hpp"
#include "dtm/core/scratch.hpp"

namespace dtm::local {

/// A backend that has the operations below specialises it: `available`, and run(ctx, operation).
template <class Device>
struct fused_rows {
  static constexpr bool available = false;
};

template <class Context, class Operation>
void run_fused(Context& ctx, Operation const& operation) {
  fused_rows<typename Context::device_type>::run(ctx, operation);
}

template <class T>
struct norm_weights {
  T const* gamma;
  T const* beta;
};
template <class A>
struct norm_gradients {
  A* gamma;
  A* beta;
};
/// Of each position; made by a forward operation, read by the others.
template <class A>
struct norm_statistics {
  A* mean;
  A* rstd;
};

/// Planes of batch x channels that lie anywhere, as in the tiles of the ranks that get them: where each
/// begins, and that rows of `columns` positions are `row_step` apart. Where `first` is null they lie
/// together.
template <class T>
struct scattered_planes {
  T* const* first = nullptr;
  std::int64_t columns = 0, row_step = 0;
};

/// x [batch, positions, channels] and the layer normalisation of it.
template <class T>
struct normalised_rows {
  T const* x;
  std::int64_t batch, positions, channels;
  norm_weights<T> norm;
  norm_statistics<accumulate_t<T>> statistics;
};

/// u = LN(x); t = (u Wp^T) sigmoid(u Wg^T) mask; a and b = channels [first, first + count) of the
/// halves of t's 2 C channels, each as planes [batch, count, positions].
template <class T>
struct gated_to_planes {
  normalised_rows<T> in;
  T const* p_weight;  // [2 C, C]
  T const* g_weight;  // [2 C, C]
  T const* mask;      // [batch, positions]
  accumulate_t<T> eps;
  std::int64_t first, count;
  T* a;
  T* b;
  scattered_planes<T> a_elsewhere{}, b_elsewhere{};  // instead of a and b
};

/// dx from the planes da and db and from du, the rest of u's cotangent; dx may be du's storage.
template <class T>
struct gated_to_planes_backward {
  normalised_rows<T> in;
  T const* p_weight;
  T const* g_weight;
  T const* mask;
  T const* da;
  T const* db;
  T const* du;
  T* dx;
  accumulate_t<T>* p_gradient;
  accumulate_t<T>* g_gradient;
  norm_gradients<accumulate_t<T>> norm_gradient;
};

/// o = planes as rows; w = LN(o); y = (w Wo^T) sigmoid(u Wg^T), u = LN(x) by kept statistics.
template <class T>
struct gated_output {
  normalised_rows<T> in;
  T const* planes;  // [batch, C, positions]
  norm_weights<T> norm;
  norm_statistics<accumulate_t<T>> statistics;
  T const* o_weight;  // [C, C]
  T const* g_weight;  // [C, C]
  accumulate_t<T> eps;
  T* o;  // [batch, positions, C]; null, as the statistics, where nobody keeps it
  T* y;
  scattered_planes<T> elsewhere{};  // instead of planes
};

/// From dy: planes of o's cotangent, and du, what the gate adds to u's.
template <class T>
struct gated_output_backward {
  normalised_rows<T> in;
  T const* o;
  norm_weights<T> norm;
  norm_statistics<accumulate_t<T>> statistics;
  T const* o_weight;
  T const* g_weight;
  T const* dy;
  T* d_planes;
  T* du;
  accumulate_t<T>* o_gradient;
  accumulate_t<T>* g_gradient;
  norm_gradients<accumulate_t<T>> norm_gradient;
};

/// u = LN(x); y = (silu(u W1^T) (u W2^T)) W3^T.
template <class T>
struct swiglu_rows {
  normalised_rows<T> in;
  std::int64_t hidden;
  T const* fc1;  // [H, C]
  T const* fc2;  // [H, C]
  T const* fc3;  // [C, H]
  accumulate_t<T> eps;
  T* y;
};

template <class T>
struct swiglu_rows_backward {
  normalised_rows<T> in;
  std::int64_t hidden;
  T const* fc1;
  T const* fc2;
  T const* fc3;
  T const* dy;
  T* dx;
  accumulate_t<T>* fc1_gradient;
  accumulate_t<T>* fc2_gradient;
  accumulate_t<T>* fc3_gradient;
  norm_gradients<accumulate_t<T>> norm_gradient;
};

}  // namespace dtm::local
