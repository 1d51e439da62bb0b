#pragma once
// A layer of the Pairformer without its sequence track: the pair block.
//
//   z += D1 tri_mul_out(z, mask)            D1, D2, D3 factors of rows, D4 of columns; where nothing is
//   z += D2 tri_mul_in(z, mask)             dropped there are none
//   z += D3 tri_att_start(z, mask)
//   z += D4 tri_att_end(z, mask)
//   z += transition_z(z)
//
// Communication and what is saved are those of the five modules, in this order, and in the reverse one
// backward. The update of a dropped row is exactly zero; padded pairs are never zeroed. Source: Boltz-2
// model/layers/pairformer.py (PairformerNoSeqLayer).

#include <optional>
#include <utility>

#include "dtm/modules/transition.hpp"
#include "dtm/modules/triangle_attention.hpp"
#include "dtm/modules/triangle_multiplication.hpp"
#include "dtm/ops/dropout.hpp"

namespace dtm {

namespace module {
struct pairformer_noseq_layer {
  static constexpr char const* name = "pairformer_noseq_layer";
};
}  // namespace module

/// Factors of a layer's four updates; an empty one drops nothing.
template <class Space>
struct pair_dropout {
  std::optional<row_factors<Space>> tri_mul_out, tri_mul_in, tri_att_start;
  std::optional<column_factors<Space>> tri_att_end;

  /// The four draws of a layer, the serial program's; `first` is the first of them. Throws
  /// argument_error unless 0 <= rate < 1; a rate of 0 drops nothing.
  template <class Context, class Z>
  static pair_dropout drawn(Context& ctx, kernels::dropout_draw first, double rate, Z const& z) {
    global_extents<2> const global{{z.global_extent(0), z.global_extent(1)}};
    auto const draw = [&]<class Factors>(std::type_identity<Factors>, std::uint32_t which) {
      first.which = which;
      return draw_factors<Factors>(ctx, rate, first, global);
    };
    std::type_identity<row_factors<Space>> const of_rows{};
    std::type_identity<column_factors<Space>> const of_columns{};
    if (rate == 0) return {};
    return {draw(of_rows, 0), draw(of_rows, 1), draw(of_rows, 2), draw(of_columns, 3)};
  }
};

/// Schedules of the four triangle modules.
template <class Multiplication = channel_all_to_all, class Attention = row_resident>
struct pair_schedules {
  using multiplication = Multiplication;
  using attention = Attention;
};

template <class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width,
          class Schedules = pair_schedules<>>
struct pairformer_noseq_layer : module_base<Space> {
  using self = pairformer_noseq_layer;
  using tag = module::pairformer_noseq_layer;
  template <class S>
  using in = pairformer_noseq_layer<S, C, Heads, Width, Schedules>;
  using T = typename Space::element;
  using Z = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using dropout = pair_dropout<Space>;

  using mul_out = triangle_multiplication<outgoing, Space, C, typename Schedules::multiplication>;
  using mul_in = triangle_multiplication<incoming, Space, C, typename Schedules::multiplication>;
  using att_start =
      triangle_attention<starting, Space, C, Heads, Width, typename Schedules::attention>;
  using att_end = triangle_attention<ending, Space, C, Heads, Width, typename Schedules::attention>;
  using transition_type = transition<Space, C, 4 * C>;

  struct contract {
    template <class Module>
    using of = typename Module::contract;
    using inputs = dtm::inputs<named<arg::z, Z>, named<arg::mask, Mask>>;
    using outputs = dtm::outputs<named<arg::y, Z>>;
    using forward = joined_t<typename of<mul_out>::forward, typename of<mul_in>::forward,
                             typename of<att_start>::forward, typename of<att_end>::forward>;
    using backward = joined_t<typename of<att_end>::backward, typename of<att_start>::backward,
                              typename of<mul_in>::backward, typename of<mul_out>::backward>;
    using saved = joined_t<typename of<mul_out>::saved, typename of<mul_in>::saved,
                           typename of<att_start>::saved, typename of<att_end>::saved,
                           typename of<transition_type>::saved>;
    using budget = pair_budget<
        of<mul_out>::budget::bytes_per_position + of<mul_in>::budget::bytes_per_position +
        of<att_start>::budget::bytes_per_position + of<att_end>::budget::bytes_per_position +
        of<transition_type>::budget::bytes_per_position>;
    using within = within_budget<tag, saved, budget>;
  };

  BOOST_HANA_DEFINE_STRUCT(self, (mul_out, tri_mul_out), (mul_in, tri_mul_in),
                           (att_start, tri_att_start), (att_end, tri_att_end),
                           (transition_type, transition_z));

  template <class Context>
  explicit pairformer_noseq_layer(Context& ctx)
      : tri_mul_out(ctx),
        tri_mul_in(ctx),
        tri_att_start(ctx),
        tri_att_end(ctx),
        transition_z(ctx) {}

  struct kept {
    typename mul_out::kept tri_mul_out;
    typename mul_in::kept tri_mul_in;
    typename att_start::kept tri_att_start;
    typename att_end::kept tri_att_end;
    typename transition_type::kept transition_z;
    dropout factors;
    /// Without the factors, which are no pair.
    std::int64_t bytes() const {
      return tri_mul_out.bytes() + tri_mul_in.bytes() + tri_att_start.bytes() +
             tri_att_end.bytes() + transition_z.bytes();
    }
  };
  struct result {
    Z y;
    kept saved;
  };

  /// z [B, N, N, C] and mask [B, N, N], both pair-placed; a z that is not needed any more is taken
  /// over.
  template <class Context>
  result forward(Context& ctx, Z const& z, Mask const& mask, dropout factors = {}) const {
    return forward(ctx, z.clone(), mask, std::move(factors));
  }
  template <class Context>
  result forward(Context& ctx, Z&& given, Mask const& mask, dropout factors = {}) const {
    (void)sizeof(typename contract::within);
    Z z = std::move(given);
    auto const step = [&](auto made, auto const& factor) {
      add_update(ctx, factor, made.y, z);
      return std::move(made.saved);
    };
    auto a = step(tri_mul_out.forward(ctx, z, mask), factors.tri_mul_out);
    auto b = step(tri_mul_in.forward(ctx, z, mask), factors.tri_mul_in);
    auto c = step(tri_att_start.forward(ctx, z, mask), factors.tri_att_start);
    auto d = step(tri_att_end.forward(ctx, z, mask), factors.tri_att_end);
    auto e = step(transition_z.forward(ctx, z), nothing_dropped{});
    return {
        std::move(z),
        {std::move(a), std::move(b), std::move(c), std::move(d), std::move(e), std::move(factors)}};
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  /// The same without dropout, with nothing kept.
  template <class Context>
  Z infer(Context& ctx, Z const& z, Mask const& mask) const {
    return infer(ctx, z.clone(), mask);
  }
  template <class Context>
  Z infer(Context& ctx, Z&& given, Mask const& mask) const {
    Z z = std::move(given);
    add_into(ctx, tri_mul_out.infer(ctx, z, mask), z);
    add_into(ctx, tri_mul_in.infer(ctx, z, mask), z);
    add_into(ctx, tri_att_start.infer(ctx, z, mask), z);
    add_into(ctx, tri_att_end.infer(ctx, z, mask), z);
    add_into(ctx, transition_z.infer(ctx, z), z);
    return z;
  }

  /// dz is pair-placed, complete on every axis.
  template <class Context>
  Z backward(Context& ctx, kept saved, Z const& dz, gradients_of_t<self>& gradients) const {
    return backward(ctx, std::move(saved), dz.clone(), gradients);
  }
  template <class Context>
  Z backward(Context& ctx, kept saved, Z&& given, gradients_of_t<self>& gradients) const {
    Z dz = std::move(given);
    add_into(ctx,
             transition_z.backward(ctx, std::move(saved.transition_z), dz, gradients.transition_z),
             dz);
    auto const step = [&](auto const& module, auto module_saved, auto& module_gradients,
                          auto const& factor) {
      auto const through = [&](Z const& upstream) {
        return module.backward(ctx, std::move(module_saved), upstream, module_gradients);
      };
      add_into(ctx, factor ? through(scaled(ctx, *factor, dz)) : through(dz), dz);
    };
    step(tri_att_end, std::move(saved.tri_att_end), gradients.tri_att_end,
         saved.factors.tri_att_end);
    step(tri_att_start, std::move(saved.tri_att_start), gradients.tri_att_start,
         saved.factors.tri_att_start);
    step(tri_mul_in, std::move(saved.tri_mul_in), gradients.tri_mul_in, saved.factors.tri_mul_in);
    step(tri_mul_out, std::move(saved.tri_mul_out), gradients.tri_mul_out,
         saved.factors.tri_mul_out);
    return dz;
  }
  template <class Context, class Kept, class Got, class Gradients>
  Z backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::dy>, Z, Got>();
    __builtin_unreachable();
  }

 private:
  struct nothing_dropped {};
  template <class Context, class Factor>
  static void add_update(Context& ctx, std::optional<Factor> const& factor, Z const& y, Z& z) {
    if (factor)
      add_scaled(ctx, *factor, y, z);
    else
      add_into(ctx, y, z);
  }
  template <class Context>
  static void add_update(Context& ctx, nothing_dropped, Z const& y, Z& z) {
    add_into(ctx, y, z);
  }
};

}  // namespace dtm
