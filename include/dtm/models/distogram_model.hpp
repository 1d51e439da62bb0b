#pragma once
// The distogram model: from a sequence to distance bins and their loss.
//
//   s = res_type_encoding(res_type)
//   z = initial_pair(s) + rel_pos(features)
//   depth times:  z = pairformer_noseq_layer(z, M)
//   logits = distogram_module(z);  loss = distogram_loss(logits, target, disto_mask)
//   with M[i,j] = m_i m_j of the token mask
//
// Modules and names are Boltz-2's; dropout is off. Depth is a run-time value, channels are
// compile-time. Per rank the model keeps 13 pair tiles a block (4 + 4 + 2 + 2 + 1, see each contract)
// and O(N/cp0) of singles. The number of tokens is a multiple of cp0 cp1 (row_resident attention).

#include <utility>
#include <vector>

#include "dtm/modules/distogram_module.hpp"
#include "dtm/modules/initial_pair.hpp"
#include "dtm/modules/losses/distogram_loss.hpp"
#include "dtm/modules/pairformer_noseq_layer.hpp"
#include "dtm/modules/relative_position_encoder.hpp"

namespace dtm {

template <class Space, std::int64_t C, std::int64_t Cs = C, class Schedules = pair_schedules<>,
          std::int64_t Classes = 33, std::int64_t Bins = 64, std::int64_t Heads = 4>
struct distogram_model : module_base<Space> {
  using self = distogram_model;
  template <class S>
  using in = distogram_model<S, C, Cs, Schedules, Classes, Bins, Heads>;
  using pair_type = initial_pair<Space, Cs, C>;
  using rel_pos_type = relative_position_encoder<Space, C>;
  static_assert(C % Heads == 0, "dtm distogram_model: channels are a multiple of the heads");
  using block_type = pairformer_noseq_layer<Space, C, Heads, C / Heads, Schedules>;
  using blocks_type = module_list<block_type>;
  using head_type = dtm::distogram_module<Space, C, Bins, 1>;
  using loss_type = distogram_loss<Space, Bins, 1>;
  using encoding_type = linear_parameters<Space, Classes, Cs>;
  BOOST_HANA_DEFINE_STRUCT(self, (encoding_type, res_type_encoding), (pair_type, pair),
                           (rel_pos_type, rel_pos), (blocks_type, layers),
                           (head_type, distogram_module));

  template <class Context>
  distogram_model(Context& ctx, int depth)
      : res_type_encoding(ctx),
        pair(ctx),
        rel_pos(ctx),
        layers(ctx, depth),
        distogram_module(ctx) {}
  int configuration() const { return layers.size(); }

  /// One rank's share of the input; all in row form but the target.
  struct batch_type {
    single_tensor<Space, c<Classes>> res_type;  // [B, N, 33] one-hot
    typename rel_pos_type::Features features;   // [B, N, 6]
    single_tensor<Space> token_mask;            // [B, N]
    single_tensor<Space> disto_mask;            // [B, N]
    typename loss_type::Target target;          // [B, N, N, conformers, bins]
  };

  struct kept {
    typename pair_type::kept pair;
    typename rel_pos_type::kept rel_pos;
    std::vector<typename block_type::kept> layers;
    typename head_type::kept head;
    typename loss_type::kept loss;
  };
  struct result {
    typename loss_type::Loss loss;
    typename loss_type::BatchLoss batch_loss;
    typename head_type::Logits logits;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, batch_type const& batch) const {
    auto first = pair.forward(ctx, linear(ctx, batch.res_type, res_type_encoding.weight));
    auto relative = rel_pos.forward(ctx, batch.features);
    auto z = std::move(first.y);
    add_into(ctx, relative.y, z);
    relative.y.release();
    auto const mask = outer_product(
        ctx, batch.token_mask,
        apply<transpose<row_axis<Space>, column_axis<Space>>>(ctx, batch.token_mask, "mask"));
    std::vector<typename block_type::kept> blocks;
    for (int i = 0; i < layers.size(); ++i) {
      auto block = layers[i].forward(ctx, std::move(z), mask);
      z = std::move(block.y);
      blocks.push_back(std::move(block.saved));
    }
    auto head = distogram_module.forward(ctx, z);
    auto loss = loss_type{}.forward(ctx, head.y, batch.target, batch.disto_mask);
    return {std::move(loss.loss),
            std::move(loss.batch_loss),
            std::move(head.y),
            {std::move(first.saved), std::move(relative.saved), std::move(blocks),
             std::move(head.saved), std::move(loss.saved)}};
  }

  /// Adds every parameter gradient. d_loss is complete: the same number on every rank.
  template <class Context>
  void backward(Context& ctx, kept saved, batch_type const& batch,
                typename loss_type::Loss const& d_loss, gradients_of_t<self>& gradients) const {
    auto dz = distogram_module.backward(ctx, std::move(saved.head),
                                        loss_type{}.backward(ctx, std::move(saved.loss), d_loss),
                                        gradients.distogram_module);
    for (int i = layers.size(); i-- > 0;)
      dz = layers[i].backward(ctx, std::move(saved.layers[std::size_t(i)]), std::move(dz),
                              gradients.layers[i]);
    rel_pos.backward(ctx, std::move(saved.rel_pos), dz, gradients.rel_pos);
    auto const ds = pair.backward(ctx, std::move(saved.pair), dz, gradients.pair);
    add_weight_gradient(ctx, ds, batch.res_type, gradients.res_type_encoding.weight);
  }
};

}  // namespace dtm
