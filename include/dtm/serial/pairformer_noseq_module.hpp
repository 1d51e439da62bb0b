#pragma once
// Layers of the Pairformer without a sequence track, one after another; no layer is the identity.
// The serial module is Boltz-2's PairformerNoSeqModule.
//
//   z = layers.0(z), layers.1(z), ..        z (B, N, N, token_z), mask (B, N, N)

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtm/serial/pairformer_noseq_layer.hpp"

namespace dtm::serial {

template <class T>
struct pairformer_noseq_module {
  using value_type = T;

  std::vector<pairformer_noseq_layer<T>> layers;

  struct saved {
    std::vector<typename pairformer_noseq_layer<T>::saved> layers;
  };
  struct result {
    array<T> y;
    saved kept;
  };

  pairformer_noseq_module() = default;
  pairformer_noseq_module(std::int64_t num_blocks, std::int64_t token_z, std::int64_t width,
                          std::int64_t heads)
      : layers(static_cast<std::size_t>(num_blocks),
               pairformer_noseq_layer<T>(token_z, width, heads)) {}

  /// Factors for every layer, or none at all.
  result forward(array<T> z, array<T> const& mask,
                 std::vector<pair_dropout<T>> const& factors = {}) const {
    if (!factors.empty() && factors.size() != layers.size())
      throw layout_error("pairformer_noseq_module: factors of dropout are given for " +
                         std::to_string(factors.size()) + " layers, there are " +
                         std::to_string(layers.size()));
    saved kept;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      auto layer =
          layers[l].forward(std::move(z), mask, factors.empty() ? pair_dropout<T>{} : factors[l]);
      z = std::move(layer.y);
      kept.layers.push_back(std::move(layer.kept));
    }
    return {std::move(z), std::move(kept)};
  }

  /// Adds the parameter gradients and returns dz.
  array<T> backward(saved const& kept, array<T> dz, pairformer_noseq_module& gradients) const {
    for (std::size_t l = layers.size(); l-- > 0;)
      dz = layers[l].backward(kept.layers[l], std::move(dz), gradients.layers[l]);
    return dz;
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    for (std::size_t l = 0; l < layers.size(); ++l)
      layers[l].each_parameter(f, dotted(prefix, "layers." + std::to_string(l)));
  }
};

}  // namespace dtm::serial
