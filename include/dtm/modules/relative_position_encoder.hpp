#pragma once
// Relative positions: each pair of tokens adds up columns of one weight, chosen by six integer
// features.
//
//   z[i,j] = W[:, position] + W[:, 66 + token] + same_entity W[:, 132] + W[:, 133 + chain]
//   with r_max 32 and s_max 2
//
// features int64 [batch, tokens, 6] in row form, in the order asym_id, residue_index, entity_id,
// token_index, sym_id, cyclic_period; z pair-placed. Forward: the features are transposed to
// column form, and with cyclic_pos_enc one integer says whether any token of the whole batch has a
// cyclic period (a maximum over the data and row axes; serially the flag is batch-wide). Backward:
// no message; only the weight has a gradient, which is added. Saves the features in both forms and
// the flag, which stays on the device.
// Source: Boltz-2 model/modules/encodersv2.py (RelativePositionEncoder).

#include <utility>

#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/kernels/relative_position.hpp"
#include "dtm/ops/elementwise.hpp"
#include "dtm/parameters/layers.hpp"

namespace dtm {

namespace module {
struct relative_position_encoder {
  static constexpr char const* name = "relative_position_encoder";
};
}  // namespace module

/// The flags that the serial constructor takes; the released model has both on.
struct relative_position_options {
  bool fix_sym_check = true;
  bool cyclic_pos_enc = true;
};

template <class Space, std::int64_t C, std::int64_t R = 32, std::int64_t SymMax = 2>
struct relative_position_encoder : module_base<Space> {
  using self = relative_position_encoder;
  using tag = module::relative_position_encoder;
  template <class S>
  using in = relative_position_encoder<S, C, R, SymMax>;
  using T = typename Space::element;
  using mesh_type = typename Space::mesh_type;
  static constexpr std::int64_t width = 2 * (2 * R + 2) + 1 + (2 * SymMax + 2);
  using Features =
      tensor<std::int64_t,
             layout<mesh_type, shape<batch, tokens, c<6>>, shard<0>, shard<1>, replicate>,
             typename Space::device>;
  using across = transpose<row_axis<Space>, column_axis<Space>>;
  using Column = after_t<across, Features>;
  using Flag =
      tensor<std::int32_t, layout<mesh_type, shape<>, partial<max>, partial<max>, replicate>,
             typename Space::device>;
  using any_of_batch = all_reduce<data_axis<Space>, row_axis<Space>>;
  using AnyCyclic = after_t<any_of_batch, Flag>;
  using Z = pair_tensor<Space, c<C>>;

  struct contract {
    using inputs = dtm::inputs<named<arg::features, Features>>;
    using outputs = dtm::outputs<named<arg::z, Z>>;
    using forward =
        collectives<on_tensor<arg::features, across>, on_tensor<arg::cyclic, any_of_batch>>;
    using backward = collectives<>;
    using saved = dtm::saved<named<arg::features, Features>, named<arg::column, Column>,
                             named<arg::cyclic, AnyCyclic>>;
    using budget = single_budget<2 * 6 * 8 + 4>;
    using within = within_budget<tag, saved, budget>;
  };

  using weight_type = linear_parameters<Space, width, C>;
  BOOST_HANA_DEFINE_STRUCT(self, (weight_type, linear_layer));
  relative_position_options options;

  template <class Context>
  explicit relative_position_encoder(Context& ctx, relative_position_options given = {})
      : linear_layer(ctx), options(given) {}
  relative_position_options configuration() const { return options; }

  struct kept {
    Features features;
    Column column;
    AnyCyclic cyclic;
    std::int64_t bytes() const { return features.bytes() + column.bytes() + cyclic.bytes(); }
  };
  struct result {
    Z y;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, Features const& features) const {
    (void)sizeof(typename contract::within);
    kept saved{features.clone(), apply<across>(ctx, features, "features"),
               any_cyclic(ctx, features)};
    Z z(ctx, global_extents<4>{{features.global_extent(0), features.global_extent(1),
                                features.global_extent(1), C}});
    auto const selected = select(ctx, saved, z.size() / C);
    local::for_each(ctx, z.size(),
                    kernels::add_selected_columns<T>{selected.data(), linear_layer.weight.data(),
                                                     width, C, z.data()});
    return {std::move(z), std::move(saved)};
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  template <class Context>
  void backward(Context& ctx, kept saved, Z const& dz, gradients_of_t<self>& gradients) const {
    std::int64_t const pairs = dz.size() / C;
    auto const selected = select(ctx, saved, pairs);
    local::add_selected_columns_gradient(ctx, pairs, width, C, selected.data(), dz.data(),
                                         gradients.linear_layer.weight.data());
  }
  template <class Context, class Kept, class Got, class Gradients>
  void backward(Context&, Kept&&, Got const&, Gradients&) const {
    diagnose_backward<at<tag, arg::dz>, Z, Got>();
    __builtin_unreachable();
  }

 private:
  // Zero, without a message, where the option is off.
  template <class Context>
  AnyCyclic any_cyclic(Context& ctx, Features const& features) const {
    if (!options.cyclic_pos_enc) return zeros<AnyCyclic>(ctx, extents{});
    Flag own(ctx, extents{});
    local::for_each(
        ctx, 1, kernels::any_positive{features.data() + 5, features.size() / 6, 6, own.data()});
    return apply<any_of_batch>(ctx, own, "cyclic");
  }
  template <class Context>
  scratch<std::int32_t> select(Context& ctx, kept const& saved, std::int64_t pairs) const {
    scratch<std::int32_t> selected(ctx.memory(), pairs * 4);
    local::for_each(ctx, pairs,
                    kernels::relative_position_columns{
                        saved.features.data(), saved.column.data(),
                        saved.features.to_local().extent[1], saved.column.to_local().extent[1], R,
                        SymMax, options.cyclic_pos_enc, options.fix_sym_check, selected.data(),
                        saved.cyclic.data()});
    return selected;
  }
};

}  // namespace dtm
