#pragma once
// The seam between the program and the model: main.cpp knows only this header. `train` is compiled
// once a backend and element type (train_fp32.cpp, ...), which is where the sharded model is
// instantiated.

#include <functional>
#include <string>
#include <vector>

#include <dtm/comm/world.hpp>
#include <dtm/core/device.hpp>
#include <dtm/core/element.hpp>

#include "features.hpp"
#include "options.hpp"
#include "report.hpp"
#include "verify.hpp"

namespace example {

/// What a training gets. The same on every rank.
struct task {
  options const& choice;
  features const& input;  // whole; each rank takes its tile
  training_settings settings;
  dtm::comm::world& world;
  /// Called on every rank after each step: step from 1, loss before the step (equal on all ranks),
  /// seconds.
  std::function<void(step_record const&)> after_step;
};

struct outcome {
  double final_loss = 0;          // after the last step; on every rank
  std::vector<double> contacts;   // rank 0: (padded, padded) probability of a contact
  std::vector<rank_usage> ranks;  // rank 0
  std::string contracts;          // rank 0: table of the modules
  std::vector<module_share> shares;
  trajectory path;  // rank 0, filled where choice.verify: losses and final parameters
};

/// Trains for `choice.steps` steps, collectively over `world`.
template <class Device, class T>
outcome train(task const& work);

extern template outcome train<dtm::host, float>(task const&);
extern template outcome train<dtm::host, double>(task const&);
extern template outcome train<dtm::host, dtm::bf16>(task const&);
extern template outcome train<dtm::emulated, float>(task const&);
#ifdef DTM_EXAMPLE_CUDA
extern template outcome train<dtm::cuda, float>(task const&);
extern template outcome train<dtm::cuda, dtm::bf16>(task const&);
#endif

}  // namespace example
