#pragma once
// Layers of the Pairformer without a sequence track, one after another; their number is a run-time
// value, none is the identity.
//
//   z = layers.0(z), layers.1(z), ..        z [B, N, N, C], mask [B, N, N], pair-placed
//
// What is kept for backward is a policy: everything that the layers keep, or one pair tile a layer, from
// which backward computes the layer again. Results are the same bits: a layer's dropout is a function of
// its draw. Source: Boltz-2 model/layers/pairformer.py (PairformerNoSeqModule), with its activation
// checkpointing.

#include <cstdint>
#include <utility>
#include <vector>

#include "dtm/modules/pairformer_noseq_layer.hpp"

namespace dtm {

/// Policies of what a stack of layers keeps.
enum class activations { kept, recomputed };

/// Dropout of a stack: a rate and the first layer's draw; the layers after it count up. Rate 0 drops
/// nothing.
struct stack_dropout {
  double rate = 0;
  kernels::dropout_draw first = {};

  template <class Layer, class Context, class Z>
  typename Layer::dropout of(Context& ctx, int layer, Z const& z) const {
    kernels::dropout_draw draw = first;
    draw.layer += std::uint32_t(layer);
    return Layer::dropout::drawn(ctx, draw, rate, z);
  }
};

template <class Space, std::int64_t C, std::int64_t Heads, std::int64_t Width,
          class Schedules = pair_schedules<>>
struct pairformer_noseq_module : module_base<Space> {
  using self = pairformer_noseq_module;
  template <class S>
  using in = pairformer_noseq_module<S, C, Heads, Width, Schedules>;
  using layer_type = pairformer_noseq_layer<Space, C, Heads, Width, Schedules>;
  using layers_type = module_list<layer_type>;
  using Z = typename layer_type::Z;
  using Mask = typename layer_type::Mask;
  BOOST_HANA_DEFINE_STRUCT(self, (layers_type, layers));

  template <class Context>
  pairformer_noseq_module(Context& ctx, int num_blocks) : layers(ctx, num_blocks) {}
  int configuration() const { return layers.size(); }

  struct kept {
    std::vector<typename layer_type::kept> layers;  // all of it, or
    std::vector<Z> z;                               // each layer's input, and
    Mask mask;                                      // what computing it again needs
    stack_dropout dropout;
    std::int64_t bytes() const {
      std::int64_t sum = mask.bytes();
      for (auto const& layer : layers) sum += layer.bytes();
      for (auto const& tile : z) sum += tile.bytes();
      return sum;
    }
  };
  struct result {
    Z y;
    kept saved;
  };

  template <class Context>
  result forward(Context& ctx, Z z, Mask const& mask, activations policy = activations::kept,
                 stack_dropout const& dropout = {}) const {
    kept saved{{}, {}, mask.clone(), dropout};
    for (int l = 0; l < layers.size(); ++l) {
      if (policy == activations::recomputed) saved.z.push_back(z.clone());
      auto layer =
          layers[l].forward(ctx, std::move(z), mask, dropout.template of<layer_type>(ctx, l, mask));
      z = std::move(layer.y);
      if (policy == activations::kept) saved.layers.push_back(std::move(layer.saved));
    }
    return {std::move(z), std::move(saved)};
  }

  template <class Context>
  Z infer(Context& ctx, Z z, Mask const& mask) const {
    for (int l = 0; l < layers.size(); ++l) z = layers[l].infer(ctx, std::move(z), mask);
    return z;
  }

  /// dz is pair-placed, complete on every axis.
  template <class Context>
  Z backward(Context& ctx, kept saved, Z dz, gradients_of_t<self>& gradients) const {
    for (int l = layers.size(); l-- > 0;)
      dz = layers[l].backward(ctx, layer_again(ctx, saved, l), std::move(dz), gradients.layers[l]);
    return dz;
  }

 private:
  template <class Context>
  typename layer_type::kept layer_again(Context& ctx, kept& saved, int l) const {
    if (saved.z.empty()) return std::move(saved.layers[std::size_t(l)]);
    return layers[l]
        .forward(ctx, std::move(saved.z[std::size_t(l)]), saved.mask,
                 saved.dropout.template of<layer_type>(ctx, l, saved.mask))
        .saved;
  }
};

}  // namespace dtm
