#pragma once
// Definition of train(): picks the compiled combination of channels and schedule.

#include <chrono>
#include <string>

#include <dtm/core/errors.hpp>

#include "sharded_training.hpp"
#include "training.hpp"

namespace example {

template <class Device, class T, std::int64_t Channels, class Schedules>
outcome train_with(task const& work) {
  using clock = std::chrono::steady_clock;
  sharded_training<Device, T, Channels, Schedules> training(work);
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
  result.shares = training.shares();
  return result;
}

/// Which channels are compiled for a backend and element type.
template <class Device, class T>
struct compiled;
template <>
struct compiled<dtm::host, float> : std::integer_sequence<int, 16, 32, 64> {};
template <>
struct compiled<dtm::host, double> : std::integer_sequence<int, 16, 32> {};
template <>
struct compiled<dtm::host, dtm::bf16> : std::integer_sequence<int, 32> {};
template <>
struct compiled<dtm::emulated, float> : std::integer_sequence<int, 16> {};
template <>
struct compiled<dtm::cuda, float> : std::integer_sequence<int, 16, 32, 64> {};
template <>
struct compiled<dtm::cuda, dtm::bf16> : std::integer_sequence<int, 32> {};

template <class Device, class T, std::int64_t Channels>
outcome train_scheduled(task const& work) {
  switch (work.choice.triangle) {
    case schedule::all_to_all:
      return train_with<Device, T, Channels, dtm::pair_schedules<>>(work);
    case schedule::cannon:
      return train_with<Device, T, Channels, dtm::pair_schedules<dtm::cannon, dtm::ring>>(work);
  }
  throw dtm::argument_error("--schedule is not known");
}

template <class Device, class T, int... Channels>
outcome train_compiled(task const& work, std::integer_sequence<int, Channels...>) {
  outcome result;
  std::string known;
  bool const found = ((known += (known.empty() ? "" : ", ") + std::to_string(Channels),
                       Channels == work.settings.channels &&
                           (result = train_scheduled<Device, T, Channels>(work), true)) ||
                      ...);
  if (!found)
    throw dtm::argument_error("--channels " + std::to_string(work.settings.channels) +
                              " is not compiled for " + dtm::element_name<T>() +
                              " on this backend, which has " + known);
  return result;
}

template <class Device, class T>
outcome train(task const& work) {
  return train_compiled<Device, T>(work, compiled<Device, T>{});
}

}  // namespace example
