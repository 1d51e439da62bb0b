#pragma once
// The distogram model: from a sequence to distance bins and their loss.
//
//   s = res_type_encoding(res_type)
//   z = initial_pair(s) + rel_pos(features)
//   depth times:  z += tri_mul_out(z, M);  z += tri_mul_in(z, M);  z += transition_z(z)
//   logits = distogram_module(z);  loss = distogram_loss(logits, target, disto_mask)
//   with M[i,j] = m_i m_j of the token mask
//
// Modules and names are Boltz-2's; dropout is off. Depth is a run-time value, channels are
// compile-time. Per rank the model keeps 9 pair tiles a block (4 + 4 + 1, see each contract) and
// O(N/cp0) of singles.

#include <utility>
#include <vector>

#include "dtm/modules/distogram_module.hpp"
#include "dtm/modules/initial_pair.hpp"
#include "dtm/modules/losses/distogram_loss.hpp"
#include "dtm/modules/relative_position_encoder.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/modules/triangle_multiplication.hpp"

namespace dtm {

/// The pair half of a Pairformer layer without triangle attention, with its residuals.
template <class Space, std::int64_t C, class Schedule>
struct distogram_block : module_base<Space> {
  using self = distogram_block;
  template <class S>
  using in = distogram_block<S, C, Schedule>;
  using Z = pair_tensor<Space, c<C>>;
  using Mask = pair_tensor<Space>;
  using out_type = triangle_multiplication<outgoing, Space, C, Schedule>;
  using in_type = triangle_multiplication<incoming, Space, C, Schedule>;
  using transition_type = transition<Space, C, 4 * C>;
  BOOST_HANA_DEFINE_STRUCT(self, (out_type, tri_mul_out), (in_type, tri_mul_in),
                           (transition_type, transition_z));

  template <class Context>
  explicit distogram_block(Context& ctx) : tri_mul_out(ctx), tri_mul_in(ctx), transition_z(ctx) {}

  struct kept {
    typename out_type::kept tri_mul_out;
    typename in_type::kept tri_mul_in;
    typename transition_type::kept transition_z;
    std::int64_t bytes() const {
      return tri_mul_out.bytes() + tri_mul_in.bytes() + transition_z.bytes();
    }
  };
  struct result {
    Z y;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, Z z, Mask const& mask) const {
    auto first = tri_mul_out.forward(ctx, z, mask);
    add_into(ctx, first.y, z);
    first.y.release();
    auto second = tri_mul_in.forward(ctx, z, mask);
    add_into(ctx, second.y, z);
    second.y.release();
    auto third = transition_z.forward(ctx, z);
    add_into(ctx, third.y, z);
    return {std::move(z),
            {std::move(first.saved), std::move(second.saved), std::move(third.saved)}};
  }

  template <class Context>
  Z backward(Context& ctx, kept saved, Z dz, gradients_of_t<self>& gradients) const {
    add_into(ctx,
             transition_z.backward(ctx, std::move(saved.transition_z), dz, gradients.transition_z),
             dz);
    add_into(ctx, tri_mul_in.backward(ctx, std::move(saved.tri_mul_in), dz, gradients.tri_mul_in),
             dz);
    add_into(ctx,
             tri_mul_out.backward(ctx, std::move(saved.tri_mul_out), dz, gradients.tri_mul_out),
             dz);
    return dz;
  }
};

template <class Space, std::int64_t C, std::int64_t Cs = C, class Schedule = channel_all_to_all,
          std::int64_t Classes = 33, std::int64_t Bins = 64>
struct distogram_model : module_base<Space> {
  using self = distogram_model;
  template <class S>
  using in = distogram_model<S, C, Cs, Schedule, Classes, Bins>;
  using pair_type = initial_pair<Space, Cs, C>;
  using rel_pos_type = relative_position_encoder<Space, C>;
  using block_type = distogram_block<Space, C, Schedule>;
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
