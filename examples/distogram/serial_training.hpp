#pragma once
// The serial program on one rank: what --verify compares with, and a way to look for settings.

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <dtm/serial/adam.hpp>
#include <dtm/serial/distogram_model.hpp>

#include "contact_map.hpp"
#include "features.hpp"
#include "initial_values.hpp"

namespace example {

/// What determines the run besides the structure; the same for the serial and the sharded program.
struct training_settings {
  std::int64_t blocks = 4;
  std::int64_t channels = 32;
  std::int64_t single_channels = 32;
  std::uint64_t seed = 1;
  double learning_rate = 4e-3;
  double epsilon = 1e-8;      // of Adam
  double gradient_norm = 10;  // clipped to this
};

inline dtm::serial::distogram_model_options model_options(training_settings const& settings) {
  dtm::serial::distogram_model_options result;
  result.res_types = std::int64_t(residue_classes.size());
  result.token_s = settings.single_channels;
  result.token_z = settings.channels;
  result.num_blocks = settings.blocks;
  result.num_bins = distance_bins;
  return result;
}

/// The whole input as one batch of one.
template <class T>
dtm::serial::distogram_batch<T> make_batch(features const& input) {
  std::int64_t const n = input.padded, classes = std::int64_t(residue_classes.size());
  using integers = dtm::serial::array<std::int64_t>;
  using reals = dtm::serial::array<T>;
  auto const as_real = [&](std::vector<double> const& values) {
    return reals({1, n}, std::vector<T>(values.begin(), values.end()));
  };
  return {reals({1, n, classes}, residue_one_hot<T>(input, input.all())),
          {integers({1, n}, input.asym_id), integers({1, n}, input.residue_index),
           integers({1, n}, input.entity_id), integers({1, n}, input.token_index),
           integers({1, n}, input.sym_id), integers({1, n})},
          as_real(input.token_mask),
          as_real(input.resolved_mask),
          reals({1, n, n, 1, distance_bins}, distance_one_hot<T>(input, input.all(), input.all()))};
}

/// Fills a serial module with initial values. A bias has the fan-in of the weight before it.
template <class Module>
void initialise(Module& module, std::uint64_t seed) {
  std::int64_t fan_in = 1;
  for (auto& [name, values] : dtm::serial::named_parameters(module)) {
    if (values->rank() > 1) fan_in = values->extents.back();
    fill_initial(values->values.data(), values->size(), seed, name, fan_in);
  }
}

template <class T>
class serial_training {
 public:
  serial_training(features const& input, training_settings const& settings)
      : settings_(settings), batch_(make_batch<T>(input)), model_(model_options(settings)) {
    initialise(model_, settings.seed);
    dtm::serial::adam_options adam;
    adam.learning_rate = settings.learning_rate;
    adam.epsilon = settings.epsilon;
    adam_ = dtm::serial::adam<T>(dtm::serial::named_parameters(model_), adam);
  }
  serial_training(serial_training const&) =
      delete;  // the optimiser keeps addresses of the parameters

  /// Loss before the step, then one step of Adam.
  double step() {
    auto result = model_.forward(batch_);
    auto gradients = dtm::serial::zero_gradients(model_);
    model_.backward(result.kept, T(1), gradients);
    auto named = dtm::serial::named_parameters(gradients);
    dtm::serial::clip_gradient_norm(named, settings_.gradient_norm);
    adam_.step(named);
    return double(result.loss);
  }

  double loss() const { return double(model_.forward(batch_).loss); }

  /// (N, N) probability of a contact.
  std::vector<double> contacts() const {
    auto const logits = model_.forward(batch_).logits;
    std::vector<double> result;
    for (std::int64_t pair = 0; pair < logits.positions(); ++pair) {
      result.push_back(contact_probability(logits.position(pair)));
    }
    return result;
  }

  std::map<std::string, std::vector<double>> parameters() {
    std::map<std::string, std::vector<double>> result;
    for (auto& [name, values] : dtm::serial::named_parameters(model_)) {
      result[name].assign(values->values.begin(), values->values.end());
    }
    return result;
  }

 private:
  training_settings settings_;
  dtm::serial::distogram_batch<T> batch_;
  dtm::serial::distogram_model<T> model_;
  dtm::serial::adam<T> adam_;
};

}  // namespace example
