#pragma once
// Triangle attention around the starting or the ending node.
//
//   u = LN(x) ;  b = u Wb^T ;  q, k, v, g = u W^T                   heads of `Width` channels
//   starting  o[i,j,h] = sum_k softmax_k(q[i,j,h] . k[i,k,h] / sqrt(Width)
//                                        + infinity (mask[i,k] - 1) + b[j,k,h]) v[i,k,h]
//   ending    the same of x and mask with rows and columns swapped, and y swapped back
//   y = (o sigmoid(g)) Wo^T                                          no residual inside
//
// Attention runs along a row and its bias is shared by all rows. Two schedules, the same numbers up to
// rounding; t = positions of a rank's tile, Q = cp0 cp1, and P the ranks of the axis that shards a row:
//
//   row_resident   any mesh where the number of tokens divides by cp0 cp1. Rows are exchanged whole:
//                  (1 - 1/P) t (2 C + 1) elements sent per rank forward, (1 - 1/P) t 2 C backward,
//                  and the bias, (Q - 1) t heads forward and twice that backward, once of it in
//                  accumulate_t, by panels of a quarter of a pair tile, or of one row of each
//                  rank where that is more. In infer, rows that travelled leave their place to y:
//                  where there are several panels it gathers each twice, for halves of the rows, and
//                  those of a sixth of a tile where a gathered panel is there as received, too.
//   ring           the reference's on a square P x P grid, u going round instead of k and v:
//                  (P - 1) t ((1 + 1 / P) (C + 1 + heads) + heads / P) forward, and backward the same
//                  and (P - 1) t ((1 + 1 / P) (C + heads) + heads / P) in accumulate_t.
//
// Saved, per rank: x, o (C + heads Width elements a position), the mask, two statistics a position and
// two a position and head; no score and no gathered bias. At a peak a rank of many rows holds, in pair
// tiles beside x, y and what is kept: by rows 1 in infer, 1 forward and 3 backward, by whatever
// transport (a tile of accumulate_t in backward is two of bf16); by the ring 4.2, 2.2 and 6.2 where ranks
// share memory.
// Parameter gradients add, dx is assigned; the mask is one of keys, of any weights, and has no gradient.
// Scores, maxima and sums are of accumulate_t. A row whose keys are all masked attends to what the large
// constant leaves of its scores: to all keys alike where it is beyond the precision of accumulate_t.
// Source: Boltz-2 model/layers/triangular_attention; AlphaFold 2 supplement, algorithms 13 and 14.

#include <utility>

#include "dtm/contract/contract.hpp"
#include "dtm/modules/ring_attention.hpp"
#include "dtm/modules/row_resident_attention.hpp"
#include "dtm/parameters/layers.hpp"

namespace dtm {

namespace module {
struct triangle_attention_starting {
  static constexpr char const* name = "triangle_attention_starting";
};
struct triangle_attention_ending {
  static constexpr char const* name = "triangle_attention_ending";
};
}  // namespace module

namespace detail {

template <class Node>
struct attention_tag {
  using type = module::triangle_attention_starting;
};
template <>
struct attention_tag<ending> {
  using type = module::triangle_attention_ending;
};

template <class Node, class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width,
          class Schedule>
struct attention_schedule;
template <class Node, class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width>
struct attention_schedule<Node, Space, C, Heads, Width, row_resident> {
  using type = row_resident_attention<Node, Space, C, Heads, Width>;
};

template <class Node, class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width>
struct attention_schedule<Node, Space, C, Heads, Width, ring> {
  using type = ring_attention<Node, Space, C, Heads, Width>;
};

}  // namespace detail

/// The projections of an attention, channels head by head: q, k, v, g [H c, C] and o [C, H c].
template <class Space, std::int64_t C, std::int64_t Hidden>
struct attention_projections : module_base<Space> {
  using self = attention_projections;
  template <class S>
  using in = attention_projections<S, C, Hidden>;
  using in_type = linear_parameters<Space, C, Hidden>;
  using out_type = linear_parameters<Space, Hidden, C>;
  BOOST_HANA_DEFINE_STRUCT(self, (in_type, linear_q), (in_type, linear_k), (in_type, linear_v),
                           (out_type, linear_o), (in_type, linear_g));

  template <class Context>
  explicit attention_projections(Context& ctx)
      : linear_q(ctx), linear_k(ctx), linear_v(ctx), linear_o(ctx), linear_g(ctx) {}
};

template <class Node, class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width,
          class Schedule = row_resident>
struct triangle_attention : module_base<Space> {
  using self = triangle_attention;
  using tag = typename detail::attention_tag<Node>::type;
  template <class S>
  using in = triangle_attention<Node, S, C, Heads, Width, Schedule>;
  using T = typename Space::element;
  using X = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using schedule =
      typename detail::attention_schedule<Node, Space, C, Heads, Width, Schedule>::type;

  struct contract {
    using inputs = dtm::inputs<named<arg::x, X>, named<arg::mask, Mask>>;
    using outputs = dtm::outputs<named<arg::y, X>>;
    using forward = typename schedule::forward_collectives;
    using backward = typename schedule::backward_collectives;
    using saved = typename schedule::saved;
    using budget = pair_budget<std::int64_t(sizeof(T)) * (C + Heads * Width + 1) +
                               std::int64_t(sizeof(accumulate_t<T>)) * (2 * Heads + 2)>;
    using within = within_budget<tag, saved, budget>;
  };
  using kept = typename schedule::kept;
  using result = typename schedule::result;

  using norm_type = layer_norm_parameters<Space, C>;
  using bias_type = linear_parameters<Space, C, Heads>;
  using mha_type = attention_projections<Space, C, Heads * Width>;
  BOOST_HANA_DEFINE_STRUCT(self, (norm_type, layer_norm), (bias_type, linear), (mha_type, mha));

  /// Subtracted from the score of a masked key.
  double infinity = 1e9;

  template <class Context>
  explicit triangle_attention(Context& ctx) : layer_norm(ctx), linear(ctx), mha(ctx) {}

  /// x [B, N, N, C] and mask [B, N, N], both pair-placed. Throws layout_error on all ranks where the
  /// number of tokens does not fit the schedule.
  template <class Context>
  result forward(Context& ctx, X const& x, Mask const& mask) const {
    (void)sizeof(typename contract::within);
    return schedule::forward(ctx, *this, x, mask);
  }
  /// The same y with nothing kept.
  template <class Context>
  X infer(Context& ctx, X const& x, Mask const& mask) const {
    return schedule::infer(ctx, *this, x, mask);
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  /// dy is pair-placed, complete on every axis; so is dx.
  template <class Context>
  X backward(Context& ctx, kept saved, X const& dy, gradients_of_t<self>& gradients) const {
    return schedule::backward(ctx, *this, std::move(saved), dy, gradients);
  }
  template <class Context, class Kept, class Got, class Gradients>
  X backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::dy>, X, Got>();
    __builtin_unreachable();
  }
};

}  // namespace dtm
