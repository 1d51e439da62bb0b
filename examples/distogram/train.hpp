#pragma once
// Definition of train(): picks the compiled combination of channels and schedule.

#include <chrono>
#include <string>

#include <dtm/core/errors.hpp>

#include "sharded_training.hpp"
#include "training.hpp"

namespace example {

template <class T, std::int64_t Channels, class Schedule>
outcome train_with(task const& work) {
  using clock = std::chrono::steady_clock;
  sharded_training<T, Channels, Schedule> training(work);
  outcome result;
  for (int step = 1; step <= work.choice.steps; ++step) {
    auto const start = clock::now();
    double const loss = training.step();
    result.path.losses.push_back(loss);
    work.after_step({step, loss, std::chrono::duration<double>(clock::now() - start).count()});
  }
  result.ranks = training.usage();
  if (work.choice.verify) {
    result.path.parameters = training.parameters();
    return result;
  }
  result.final_loss = training.loss();
  result.contacts = training.contacts();
  result.contracts = training.contract_table();
  return result;
}

template <class T, std::int64_t Channels>
outcome train_scheduled(task const& work) {
  switch (work.choice.triangle) {
    case schedule::all_to_all:
      return train_with<T, Channels, dtm::channel_all_to_all>(work);
    case schedule::cannon:
      return train_with<T, Channels, dtm::cannon>(work);
  }
  throw dtm::argument_error("--schedule is not known");
}

/// The channels compiled for an element type: 32 for all, 16 unless storage is 16 bits wide, 64
/// for fp32.
template <class T>
outcome train(task const& work) {
  constexpr bool narrow = std::is_same_v<T, dtm::bf16>, single = std::is_same_v<T, float>;
  if (work.settings.channels == 32) return train_scheduled<T, 32>(work);
  if constexpr (!narrow)
    if (work.settings.channels == 16) return train_scheduled<T, 16>(work);
  if constexpr (single)
    if (work.settings.channels == 64) return train_scheduled<T, 64>(work);
  throw dtm::argument_error("--channels " + std::to_string(work.settings.channels) +
                            " is not compiled for " + dtm::element_name<T>() + ", which has " +
                            (narrow   ? "32"
                             : single ? "16, 32, 64"
                                      : "16, 32"));
}

}  // namespace example
