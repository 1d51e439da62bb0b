#pragma once
// What the schedules of triangle attention share: the frame in which a node's sequences are rows, and
// what is kept for backward.

#include <type_traits>
#include <utility>

#include "dtm/backend/local.hpp"
#include "dtm/backend/transposed.hpp"
#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/core/space.hpp"
#include "dtm/kernels/elementwise.hpp"
#include "dtm/ops/channels.hpp"
#include "dtm/ops/fused_rows.hpp"

namespace dtm {

struct starting {};
struct ending {};

namespace detail {

/// The space in which a node's sequences are rows.
template <class Node, class Space>
struct attention_frame {
  using type = Space;
};
template <class T, class Mesh, class Device>
struct attention_frame<ending, space<T, Mesh, Device>> {
  using type = space<T, transposed_mesh_t<Mesh>, Device>;
};
template <class Space>
struct attention_frame<ending, pending_gradients<Space>> : attention_frame<ending, Space> {};
template <class Space>
struct attention_frame<ending, complete_gradients<Space>> : attention_frame<ending, Space> {};
template <class Space>
struct attention_frame<ending, optimiser_state<Space>> : attention_frame<ending, Space> {};
template <class Node, class Space>
using attention_frame_t = typename attention_frame<Node, Space>::type;

/// f(a context of the frame).
template <class Node, class Context, class F>
decltype(auto) on_frame(Context& ctx, F&& f) {
  if constexpr (std::is_same_v<Node, ending>) {
    transposed_context<Context> view(ctx);
    return f(view);
  } else {
    return f(ctx);
  }
}

/// What attention keeps for backward, whatever the schedule.
template <class X, class Hidden, class Scores, class Mask>
struct attention_kept {
  X x;
  layer_norm_statistics<X> norm;
  Hidden o;
  Scores score_max, score_sum;
  Mask mask;
  std::int64_t bytes() const {
    return x.bytes() + norm.mean.bytes() + norm.rstd.bytes() + o.bytes() + score_max.bytes() +
           score_sum.bytes() + mask.bytes();
  }
};
template <class X, class Hidden, class Scores, class Mask>
using attention_saved = dtm::saved<named<arg::x, X>, named<arg::o, Hidden>, named<arg::mask, Mask>,
                                   named<arg::score_max, Scores>, named<arg::score_sum, Scores>,
                                   named<arg::mean, typename layer_norm_statistics<X>::type>,
                                   named<arg::rstd, typename layer_norm_statistics<X>::type>>;

/// Statistics of a pair's positions, to be filled.
template <class Statistics, class View, class X>
Statistics fresh_statistics(View& view, X const& x) {
  using type = typename Statistics::type;
  global_extents<3> const positions{{x.global_extent(0), x.global_extent(1), x.global_extent(2)}};
  return {type(view, positions), type(view, positions)};
}

/// x at the positions of the statistics, and its layer_norm.
template <class Module, class T, class Statistics>
local::normalised_rows<T> normalised_pair(Module const& m, T const* x, Statistics const& made) {
  auto const held = made.mean.to_local();
  return {x,
          held.extent[0],
          held.extent[1] * held.extent[2],
          last_channels<typename Module::X>,
          norm_weights_of(m.layer_norm),
          pointers_to(made)};
}

/// The elements of a tensor before they are rounded: in its own place where that is none.
template <class Tensor>
class unrounded {
 public:
  using T = typename Tensor::element_type;
  using A = accumulate_t<T>;
  template <class View>
  unrounded(View& view, Tensor& place)
      : place_(place), apart_(view.memory(), std::is_same_v<T, A> ? 0 : place.size()) {}
  A* data() {
    if constexpr (std::is_same_v<T, A>)
      return place_.data();
    else
      return apart_.data();
  }
  /// Elements [first, first + count) of the tensor.
  template <class View>
  void round(View& view, std::int64_t first, std::int64_t count) {
    if constexpr (!std::is_same_v<T, A>)
      local::for_each(view, count,
                      kernels::convert<A, T>{apart_.data() + first, place_.data() + first});
  }

 private:
  Tensor& place_;
  scratch<A> apart_;
};

}  // namespace detail

}  // namespace dtm
