#pragma once
// What stands between the doubled projections of triangle multiplication and its product a channel,
// in one pass: gate, mask, and the way to channel planes; and its adjoint. Transposing kernels, as
// channels.hpp has them.
//
//   y = x * sigmoid(g) * mask [b, p, 2C];  a = y[..., :C] and b = y[..., C:] as planes [b, C, p]

#include <cstdint>

#include "dtm/kernels/channels.hpp"
#include "dtm/kernels/elementwise.hpp"

namespace dtm::kernels {

/// Over an index of [b, 2C, p]. Reads 2, writes 1; 13 flops with one exponential; memory.
template <class T>
struct masked_gate_to_planes {
  using element = T;
  T const* x;
  T const* g;
  T const* mask;
  std::int64_t positions, channels;  // of one half
  T* a;
  T* b;

  DTM_HD matrix_extents matrix() const { return {positions, 2 * channels}; }
  DTM_HD T take(std::int64_t batch, std::int64_t p, std::int64_t ch) const {
    using A = accumulate_t<T>;
    std::int64_t const position = batch * positions + p, at = position * 2 * channels + ch;
    return T(A(x[at]) * sigmoid(A(g[at])) * A(mask[position]));
  }
  DTM_HD void put(std::int64_t batch, std::int64_t p, std::int64_t ch, T value) const {
    T* const half = ch < channels ? a : b;  // named: g++ 12 with sanitizers miscompiles it unnamed
    half[(batch * channels + ch % channels) * positions + p] = value;
  }
  DTM_HD void operator()(std::int64_t i) const { transpose_one(*this, i); }
};

/// Its adjoint, no gradient to the mask, over an index of [b, p, 2C]. dx may be x's storage and dg
/// g's. Reads 3, writes 2; 17 flops with one exponential; memory.
template <class T>
struct masked_gate_from_planes_backward {
  using element = T;
  T const* da;
  T const* db;
  T const* x;
  T const* g;
  T const* mask;
  std::int64_t positions, channels;  // of one half
  T* dx;
  T* dg;

  DTM_HD matrix_extents matrix() const { return {2 * channels, positions}; }
  DTM_HD T take(std::int64_t batch, std::int64_t ch, std::int64_t p) const {
    T const* const half = ch < channels ? da : db;
    return half[(batch * channels + ch % channels) * positions + p];
  }
  DTM_HD void put(std::int64_t batch, std::int64_t ch, std::int64_t p, T dy) const {
    using A = accumulate_t<T>;
    std::int64_t const position = batch * positions + p, at = position * 2 * channels + ch;
    auto const both = gate_backward<T>::value(A(dy) * A(mask[position]), x[at], g[at]);
    dx[at] = both.first;
    dg[at] = both.second;
  }
  DTM_HD void operator()(std::int64_t i) const { transpose_one(*this, i); }
};

}  // namespace dtm::kernels
