#pragma once
// The model of the distogram example: from a sequence to distance bins and their loss, with the
// modules and names of Boltz-2. Dropout is off.
//
//   s = res_type_encoding(res_type)                          res_type (B, N, 33) one-hot
//   z = initial_pair(s) + rel_pos(features)
//   num_blocks times:  z = pairformer_noseq_layer(z, M)
//   M[i,j] = m_i m_j of token_pad_mask (B, N)
//   logits = distogram_module(z) ;  loss = distogram_loss(logits, disto_target, token_disto_mask)

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtm/serial/distogram_loss.hpp"
#include "dtm/serial/distogram_module.hpp"
#include "dtm/serial/initial_pair.hpp"
#include "dtm/serial/pairformer_noseq_layer.hpp"
#include "dtm/serial/relative_position_encoder.hpp"

namespace dtm::serial {

template <class T>
struct distogram_batch {
  array<T> res_type;                     // (B, N, 33)
  relative_position_features positions;  // each (B, N)
  array<T> token_pad_mask;               // (B, N)
  array<T> token_disto_mask;             // (B, N)
  array<T> disto_target;                 // (B, N, N, K, bins)
};

struct distogram_model_options {
  std::int64_t res_types = 33;
  std::int64_t token_s = 384;
  std::int64_t token_z = 128;
  std::int64_t num_blocks = 4;
  std::int64_t num_bins = 64;
  bool fix_sym_check = true;
  bool cyclic_pos_enc = true;
  std::int64_t heads = 4;  // of token_z / heads channels
};

template <class T>
struct distogram_model {
  using value_type = T;

  linear<T> res_type_encoding;
  initial_pair<T> pair;  // z_init_1, z_init_2
  relative_position_encoder<T> rel_pos;
  std::vector<pairformer_noseq_layer<T>> layers;
  serial::distogram_module<T> distogram_module;

  struct saved {
    array<T> res_type;
    typename initial_pair<T>::saved pair;
    typename relative_position_encoder<T>::saved rel_pos;
    std::vector<typename pairformer_noseq_layer<T>::saved> layers;
    typename serial::distogram_module<T>::saved distogram_module;
    typename distogram_loss<T>::saved loss;
  };
  struct result {
    T loss;
    array<T> batch_loss;  // (B)
    array<T> logits;      // (B, N, N, 1, bins)
    saved kept;
  };

  distogram_model() = default;
  explicit distogram_model(distogram_model_options const& o)
      : res_type_encoding(o.res_types, o.token_s),
        pair(o.token_s, o.token_z),
        rel_pos(o.token_z, o.fix_sym_check, o.cyclic_pos_enc),
        layers(static_cast<std::size_t>(o.num_blocks),
               pairformer_noseq_layer<T>(o.token_z, o.token_z / o.heads, o.heads)),
        distogram_module(o.token_z, o.num_bins) {}

  result forward(distogram_batch<T> const& batch) const {
    auto first = pair.forward(res_type_encoding.forward(batch.res_type));
    auto relative = rel_pos.forward(batch.positions);
    array<T> z = std::move(first.y);
    z += relative.y;
    array<T> const mask = pair_mask(batch.token_pad_mask);
    std::vector<typename pairformer_noseq_layer<T>::saved> kept;
    for (pairformer_noseq_layer<T> const& layer : layers) {
      auto block = layer.forward(std::move(z), mask);
      z = std::move(block.y);
      kept.push_back(std::move(block.kept));
    }
    auto head = distogram_module.forward(z);
    auto loss = distogram_loss<T>{}.forward(head.y, batch.disto_target, batch.token_disto_mask);
    return {loss.loss,
            std::move(loss.batch_loss),
            std::move(head.y),
            {batch.res_type, std::move(first.kept), std::move(relative.kept), std::move(kept),
             std::move(head.kept), std::move(loss.kept)}};
  }

  /// Adds the parameter gradients for the upstream gradient of loss and returns the cotangent of
  /// res_type.
  array<T> backward(saved const& kept, T d_loss, distogram_model& gradients) const {
    array<T> const dlogits = distogram_loss<T>{}.backward(kept.loss, d_loss);
    array<T> dz =
        distogram_module.backward(kept.distogram_module, dlogits, gradients.distogram_module);
    for (std::size_t l = layers.size(); l-- > 0;)
      dz = layers[l].backward(kept.layers[l], std::move(dz), gradients.layers[l]);
    rel_pos.backward(kept.rel_pos, dz, gradients.rel_pos);
    array<T> const ds = pair.backward(kept.pair, dz, gradients.pair);
    return res_type_encoding.backward(kept.res_type, ds, gradients.res_type_encoding);
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    res_type_encoding.each_parameter(f, dotted(prefix, "res_type_encoding"));
    pair.each_parameter(f, prefix);
    rel_pos.each_parameter(f, dotted(prefix, "rel_pos"));
    for (std::size_t l = 0; l < layers.size(); ++l)
      layers[l].each_parameter(f, dotted(prefix, "layers." + std::to_string(l)));
    distogram_module.each_parameter(f, dotted(prefix, "distogram_module"));
  }

  /// M[b,i,j] = m[b,i] m[b,j]
  static array<T> pair_mask(array<T> const& token_mask) {
    expect_rank(token_mask, 2, "distogram_model: token_pad_mask");
    std::int64_t const tokens = token_mask.extent(1);
    array<T> mask({token_mask.extent(0), tokens, tokens});
    for (std::int64_t b = 0; b < token_mask.extent(0); ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          mask(b, i, j) = token_mask(b, i) * token_mask(b, j);
    return mask;
  }
};

}  // namespace dtm::serial
