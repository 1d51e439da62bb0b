#pragma once
// Definition of train(). For now it stands in with the serial model, on one rank, until the sharded
// one is there.

#include <chrono>

#include <dtm/core/errors.hpp>

#include "training.hpp"

namespace example {

template <class T, int Channels>
outcome train_with(task const& work) {
  using clock = std::chrono::steady_clock;
  if (work.choice.cp0 * work.choice.cp1 != 1)
    throw dtm::mesh_error("the serial model runs on one rank only");
  serial_training<T> training(work.input, work.settings);
  outcome result;
  for (int step = 1; step <= work.choice.steps; ++step) {
    auto const start = clock::now();
    double const loss = training.step();
    result.path.losses.push_back(loss);
    work.after_step({step, loss, std::chrono::duration<double>(clock::now() - start).count()});
  }
  result.final_loss = training.loss();
  result.contacts = training.contacts();
  result.ranks.push_back({0, 0, 0, 0, 0, peak_resident_bytes()});
  if (work.choice.verify) result.path.parameters = training.parameters();
  return result;
}

template <class T>
outcome train(task const& work) {
  switch (work.settings.channels) {
    case 16:
      return train_with<T, 16>(work);
    case 32:
      return train_with<T, 32>(work);
    case 64:
      return train_with<T, 64>(work);
  }
  throw dtm::argument_error("--channels " + std::to_string(work.settings.channels) +
                            " was not compiled");
}

}  // namespace example
