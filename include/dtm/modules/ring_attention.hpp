#pragma once
// Triangle attention by a ring on a square grid of P x P ranks, the reference's schedule with less
// traffic. Rank (i, j) keeps its queries, rows I_i and positions J_j; keys come in P blocks. Block
// kappa is made of u of tile (i, kappa), from which each rank projects k and v itself (half of what k
// and v together would send), the mask of the same tile and the bias of tile (j, kappa).
//
//   skew   u, mask: the tile i ranks back along the columns -> (i, j - i)
//          bias: j ranks on along the rows, then i back along the columns -> (j, j - i)
//   step s kappa = j - i + s; then u and mask come from the next column, the bias from the row before
//
// A step goes through its tile by blocks of rows, of which alone it holds q, k and v. Maximum, sum and o
// are merged in accumulate_t. Backward goes the same way; du and d_bias of a block
// travel with it in accumulate_t and go home in one hop each (two for d_bias) from where the block is in
// the last step. All shifts are along one axis, so the ending node's is the same ring on the transposed
// mesh, without a message for the transposition.

#include <string>
#include <utility>

#include "dtm/core/errors.hpp"
#include "dtm/modules/attention_parts.hpp"
#include "dtm/ops/attended_rows.hpp"
#include "dtm/ops/pairs.hpp"

namespace dtm {

/// A schedule of triangle attention.
struct ring {
  static constexpr char const* name = "ring";
};

template <class Node, class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width>
struct ring_attention {
  using T = typename Space::element;
  using A = accumulate_t<T>;
  using X = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using frame = detail::attention_frame_t<Node, Space>;
  static constexpr bool is_ending = std::is_same_v<Node, ending>;
  static constexpr std::int64_t hidden_channels = Heads * Width;

  using rows = row_axis<frame>;
  using columns = column_axis<frame>;
  using tile = pair_tensor<frame, c<C>>;
  using mask_tile = pair_tensor<frame>;
  using hidden = pair_tensor<frame, c<hidden_channels>>;
  using bias = channels_first_t<pair_tensor<frame, c<Heads>>>;  // [b, heads, i, j]
  using statistics = layer_norm_statistics<tile>;
  using score_statistic =  // [b, i, heads, j]
      tensor<
          A,
          detail::permuted_layout_t<typename pair_tensor<frame, c<Heads>>::layout_type, 0, 1, 3, 2>,
          typename Space::device>;

  using forward_collectives =
      collectives<on_tensor<arg::u, ring_shift<columns>>, on_tensor<arg::mask, ring_shift<columns>>,
                  on_tensor<arg::bias, ring_shift<rows>>,
                  on_tensor<arg::bias, ring_shift<columns>>>;
  using backward_collectives =
      joined_t<forward_collectives, collectives<on_tensor<arg::du, ring_shift<columns>>,
                                                on_tensor<arg::d_bias, ring_shift<rows>>,
                                                on_tensor<arg::d_bias, ring_shift<columns>>>>;
  using saved = detail::attention_saved<tile, hidden, score_statistic, mask_tile>;
  using kept = detail::attention_kept<tile, hidden, score_statistic, mask_tile>;
  struct result {
    X y;
    kept saved;
  };

  template <class Context, class Module>
  static result forward(Context& ctx, Module const& m, X const& x, Mask const& mask) {
    return detail::on_frame<Node>(ctx, [&](auto& view) -> result {
      require_square(view);
      kept saved{in_frame(view, x),
                 detail::fresh_statistics<statistics>(view, x),
                 hidden(view, extents_of(x, hidden_channels)),
                 score_statistic(view, score_extents(x)),
                 score_statistic(view, score_extents(x)),
                 in_frame(view, mask)};
      auto const in = detail::normalised_pair(m, saved.x.data(), saved.norm);
      travellers block = begin_ring(view, m, saved.mask, in);
      local::attention_shape const shape = shape_of(saved.mask);
      rows_at_a_time part(view.memory(), shape);
      detail::unrounded<hidden> o(view, saved.o);
      tile y(view, x.global());
      int const steps = view.template size<columns>();
      for (int step = 0; step < steps; ++step)
        block.move_on(view, step + 1 < steps, [&] {
          each_block(shape, [&](block_of_rows const& rows) {
            std::int64_t const at = rows.position(shape), positions = rows.positions(shape);
            part.fill(view, m, in, block, rows);
            local::run_attention(view,
                                 local::attention_rows<T, A>{part.input(rows, block),
                                                             o.data() + at * hidden_channels,
                                                             {saved.score_max.data() + at * Heads,
                                                              saved.score_sum.data() + at * Heads},
                                                             step > 0});
            if (step + 1 < steps) return;
            T* const kept_o = saved.o.data() + at * hidden_channels;
            o.round(view, at * hidden_channels, positions * hidden_channels);
            T* const gate = part.q.data();  // the queries are done
            project(view, positions, part.u.data(), m.mha.linear_g, gate);
            local::for_each(view, positions * hidden_channels,
                            kernels::gate<T>{kept_o, gate, gate});
            local::detail::project(view, positions, hidden_channels, C, gate,
                                   m.mha.linear_o.weight.data(), y.data() + at * C);
          });
        });
      return {out_of_frame(ctx, std::move(y)), std::move(saved)};
    });
  }

  template <class Context, class Module>
  static X infer(Context& ctx, Module const& m, X const& x, Mask const& mask) {
    return forward(ctx, m, x, mask).y;
  }

  template <class Context, class Module, class Gradients>
  static X backward(Context& ctx, Module const& m, kept saved, X const& dy_given,
                    Gradients& gradients) {
    return detail::on_frame<Node>(ctx, [&](auto& view) -> X {
      auto const in = detail::normalised_pair(m, saved.x.data(), saved.norm);
      travellers block = begin_ring(view, m, saved.mask, in);
      local::attention_shape const shape = shape_of(saved.mask);
      auto& memory = view.memory();
      rows_at_a_time part(memory, shape);
      std::int64_t const count = in.batch * in.positions * hidden_channels;
      scratch<T> d_o(memory, count), g(memory, count);  // g: the gates' cotangent
      {
        auto const dy = in_frame(view, dy_given);
        each_block(shape, [&](block_of_rows const& rows) {
          std::int64_t const at = rows.position(shape) * hidden_channels,
                             positions = rows.positions(shape),
                             elements = positions * hidden_channels;
          T const* const dy_rows = dy.data() + rows.position(shape) * C;
          T* const gated = part.q.data();
          local::detail::norm_again(view, in, rows.position(shape), positions, part.u.data());
          project(view, positions, part.u.data(), m.mha.linear_g, g.data() + at);
          local::for_each(view, elements,
                          kernels::gate<T>{saved.o.data() + at, g.data() + at, gated});
          local::detail::add_projection_gradient(view, positions, hidden_channels, C, dy_rows,
                                                 gated, gradients.mha.linear_o.weight.data());
          local::detail::project_backward(view, positions, hidden_channels, C, dy_rows,
                                          m.mha.linear_o.weight.data(), d_o.data() + at, false);
        });
      }
      local::for_each(
          view, count,
          kernels::gate_backward<T>{d_o.data(), saved.o.data(), g.data(), d_o.data(), g.data()});

      scratch<A> dq(memory, count), dk(memory, part.k.size()), dv(memory, part.k.size());
      set_to_zero(view, dq);
      cotangents travelling(view, dy_given);
      int const steps = view.template size<columns>();
      for (int step = 0; step < steps; ++step) {
        block.move_on(view, step + 1 < steps, [&] {
          each_block(shape, [&](block_of_rows const& rows) {
            std::int64_t const at = rows.position(shape), positions = rows.positions(shape);
            part.fill(view, m, in, block, rows);
            set_to_zero(view, dk);
            set_to_zero(view, dv);
            local::run_attention(view, local::attention_rows_backward<T, A>{
                                           part.input(rows, block),
                                           saved.o.data() + at * hidden_channels,
                                           {saved.score_max.data() + at * Heads,
                                            saved.score_sum.data() + at * Heads},
                                           d_o.data() + at * hidden_channels,
                                           dq.data() + at * hidden_channels,
                                           dk.data(),
                                           dv.data(),
                                           travelling.d_bias.data() + part.bias_of(rows),
                                           true});
            T const* const u = block.u.data() + at * C;
            A* const du = travelling.du.data() + at * C;
            finish_projection(view, positions, dk.data(), u, m.mha.linear_k, gradients.mha.linear_k,
                              du);
            finish_projection(view, positions, dv.data(), u, m.mha.linear_v, gradients.mha.linear_v,
                              du);
          });
        });
        if (step + 1 < steps) travelling.move_on(view);
      }
      travelling.go_home(view);
      each_block(shape, [&](block_of_rows const& rows) {
        std::int64_t const at = rows.position(shape), positions = rows.positions(shape);
        A* const du = travelling.du.data() + at * C;
        T const* const dg = g.data() + at * hidden_channels;
        local::detail::norm_again(view, in, at, positions, part.u.data());
        finish_projection(view, positions, dq.data() + at * hidden_channels, part.u.data(),
                          m.mha.linear_q, gradients.mha.linear_q, du);
        local::detail::add_projection_gradient(view, positions, C, hidden_channels, dg,
                                               part.u.data(), gradients.mha.linear_g.weight.data());
        local::detail::project_backward(view, positions, C, hidden_channels, dg,
                                        m.mha.linear_g.weight.data(), du, true);
      });
      tile dx(view, dy_given.global());
      local::run_rows(view, local::norm_to_planes_backward<T>{
                                in, m.linear.weight.data(), Heads, travelling.d_bias.data(),
                                travelling.du.data(), dx.data(), gradients.linear.weight.data(),
                                detail::norm_gradients_of(gradients.layer_norm)});
      return out_of_frame(ctx, std::move(dx));
    });
  }

 private:
  using block_of_rows = local::detail::block_of_rows;
  static std::int64_t together(local::attention_shape const& shape) {
    return local::detail::rows_together<typename Space::device>(shape);
  }
  template <class F>
  static void each_block(local::attention_shape const& shape, F const& f) {
    local::detail::each_block_of_rows<typename Space::device>(shape, f);
  }

  /// How far a rank is from where its block was, along an axis of P ranks.
  static int back(int distance, int ranks) { return (ranks - distance % ranks) % ranks; }

  /// What a block of keys consists of; it goes from rank to rank.
  struct travellers {
    tile u;
    mask_tile mask;
    bias b;

    /// Runs `work` on what is here while the next, if there is one, is on its way, and takes it.
    template <class View, class Work>
    void move_on(View& view, bool is_next, Work const& work) {
      if (!is_next) return work();
      int const before = back(1, view.template size<rows>());
      auto u_sent = shift_along<columns>(view, u, 1, "u");
      auto mask_sent = shift_along<columns>(view, mask, 1, "mask");
      auto bias_sent = shift_along<rows>(view, b, before, "bias");
      work();
      tile u_next = u_sent.wait();
      mask_tile mask_next = mask_sent.wait();
      bias bias_next = bias_sent.wait();
      u = std::move(u_next);
      mask = std::move(mask_next);
      b = std::move(bias_next);
    }
  };

  template <class View, class Module>
  static travellers begin_ring(View& view, Module const& m, mask_tile const& mask,
                               local::normalised_rows<T> const& in) {
    int const i = view.template coordinate<rows>(), j = view.template coordinate<columns>(),
              ranks = view.template size<columns>();
    auto const& extents = mask.global();
    bias own(view, global_extents<4>{{extents[0], Heads, extents[1], extents[2]}});
    local::run_rows(
        view, local::norm_to_planes<T>{in, m.linear.weight.data(), Heads, A(1e-5), own.data()});
    auto own_across = shift_along<rows>(view, own, j, "bias");
    auto const across = own_across.wait();
    auto bias_sent = shift_along<columns>(view, across, back(i, ranks), "bias");
    tile u(view, global_extents<4>{{extents[0], extents[1], extents[2], C}});
    local::detail::norm_again(view, in, 0, in.batch * in.positions, u.data());
    auto u_sent = shift_along<columns>(view, u, back(i, ranks), "u");
    auto mask_sent = shift_along<columns>(view, mask, back(i, ranks), "mask");
    bias b = bias_sent.wait();
    tile u_block = u_sent.wait();
    return {std::move(u_block), mask_sent.wait(), std::move(b)};
  }

  /// Cotangents of a block's u and bias, which travel with it.
  struct cotangents {
    with_element_t<tile, A> du;
    with_element_t<bias, A> d_bias;

    template <class View>
    cotangents(View& view, X const& like)
        : du(view, like.global()),
          d_bias(view, global_extents<4>{{like.global_extent(0), Heads, like.global_extent(1),
                                          like.global_extent(2)}}) {
      local::for_each(view, du.size(), kernels::set_zero<A>{du.data()});
      local::for_each(view, d_bias.size(), kernels::set_zero<A>{d_bias.data()});
    }
    template <class View>
    void move_on(View& view) {
      shift<columns>(view, du, 1, "du");
      shift<rows>(view, d_bias, back(1, view.template size<rows>()), "d_bias");
    }
    /// From where the last step has the block (i, j - i - 1).
    template <class View>
    void go_home(View& view) {
      int const i = view.template coordinate<rows>(), j = view.template coordinate<columns>(),
                ranks = view.template size<columns>();
      shift<columns>(view, du, (i + 1) % ranks, "du");
      shift<columns>(view, d_bias, (i + 1) % ranks, "d_bias");
      shift<rows>(view, d_bias, back(j + 1, ranks), "d_bias");
    }
    template <class Axis, class View, class Tensor>
    static void shift(View& view, Tensor& tensor, int distance, char const* name) {
      auto sent = shift_along<Axis>(view, tensor, distance, name);
      Tensor next = sent.wait();
      tensor = std::move(next);
    }
  };

  /// Of some rows of the queries' own tile u and q, of those of the block that is here k, v and the
  /// additive mask.
  struct rows_at_a_time {
    local::attention_shape shape;
    scratch<T> u, q, k, v;
    scratch<A> added;
    rows_at_a_time(memory& storage, local::attention_shape const& all)
        : shape(all),
          u(storage, together(all) * all.queries * C),
          q(storage, together(all) * all.queries * hidden_channels),
          k(storage, q.size()),
          v(storage, q.size()),
          added(storage, together(all) * all.keys) {}

    template <class View, class Module>
    void fill(View& view, Module const& m, local::normalised_rows<T> const& in,
              travellers const& block, block_of_rows const& rows) {
      std::int64_t const at = rows.position(shape), positions = rows.positions(shape);
      T const* const u_of_keys = block.u.data() + at * C;
      local::detail::norm_again(view, in, at, positions, u.data());
      project(view, positions, u.data(), m.mha.linear_q, q.data());
      project(view, positions, u_of_keys, m.mha.linear_k, k.data());
      project(view, positions, u_of_keys, m.mha.linear_v, v.data());
      local::for_each(
          view, positions,
          kernels::additive_mask<T>{block.mask.data() + at, A(m.infinity), added.data()});
    }
    local::attention_input<T> input(block_of_rows const& rows, travellers const& block) const {
      return {{1, rows.rows, shape.queries, shape.keys, Heads, Width},
              A(1) / std::sqrt(A(Width)),
              q.data(),
              k.data(),
              v.data(),
              block.b.data() + bias_of(rows),
              added.data()};
    }
    std::int64_t bias_of(block_of_rows const& rows) const {
      return rows.sample * Heads * shape.queries * shape.keys;
    }
  };

  static local::attention_shape shape_of(mask_tile const& mask) {
    auto const held = mask.to_local();
    return {held.extent[0], held.extent[1], held.extent[2], held.extent[2], Heads, Width};
  }

  template <class View, class Linear>
  static void project(View& view, std::int64_t positions, T const* u, Linear const& linear,
                      T* result) {
    local::detail::project(view, positions, C, hidden_channels, u, linear.weight.data(), result);
  }
  template <class View>
  static void set_to_zero(View& view, scratch<A>& sums) {
    local::for_each(view, sums.size(), kernels::set_zero<A>{sums.data()});
  }
  /// Adds the gradient of a projection of u and its part of u's cotangent.
  template <class View, class Linear, class Gradient>
  static void finish_projection(View& view, std::int64_t positions, A const* upstream, T const* u,
                                Linear const& linear, Gradient& gradient, A* du) {
    scratch<T> rounded(view.memory(), positions * hidden_channels);
    local::for_each(view, rounded.size(), kernels::convert<A, T>{upstream, rounded.data()});
    local::detail::add_projection_gradient(view, positions, C, hidden_channels, rounded.data(), u,
                                           gradient.weight.data());
    local::gemm_shape shape{1, positions, C, hidden_channels};
    shape.accumulate = true;
    local::gemm(view, shape, rounded.data(), linear.weight.data(), du);
  }

  template <class View>
  static void require_square(View& view) {
    int const p0 = view.template size<rows>(), p1 = view.template size<columns>();
    if (p0 != p1)
      throw mesh_error("dtm triangle_attention: the ring schedule needs a square mesh and got " +
                       std::string(rows::name.characters) + "=" + std::to_string(p0) + ", " +
                       columns::name.characters + "=" + std::to_string(p1) +
                       "; use the row_resident schedule, which runs on any mesh");
  }

  template <class View, class Pair>
  static auto in_frame(View& view, Pair const& pair) {
    if constexpr (is_ending)
      return swap_pairs(view, pair);
    else
      return pair.clone();
  }
  template <class Context>
  static X out_of_frame(Context& ctx, tile y) {
    if constexpr (is_ending)
      return swap_pairs(ctx, y);
    else
      return y;
  }
  static global_extents<4> extents_of(X const& x, std::int64_t channels) {
    return {{x.global_extent(0), x.global_extent(1), x.global_extent(2), channels}};
  }
  static global_extents<4> score_extents(X const& x) {
    return {{x.global_extent(0), x.global_extent(1), Heads, x.global_extent(2)}};
  }
};

}  // namespace dtm
