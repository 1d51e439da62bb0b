#pragma once
// Worlds for tests that fail on purpose: each scenario has its own, and what is left of it disturbs
// no later one.

#include <dtm/comm/world.hpp>

#include <string>

#include "support/runner.hpp"

namespace dtm::testing {

inline comm::options settings(comm::check_level level, double deadline = 20) {
  comm::options o;
  o.level = level;
  o.deadline_seconds = deadline;
  return o;
}

/// How one rank left a scenario.
struct outcome {
  comm::failure_kind kind = comm::failure_kind::none;
  std::string text;
  double seconds = 0;

  bool says(std::string const& words) const { return text.find(words) != std::string::npos; }
};

/// Runs `body(world)` on a fresh world, inside world.run.
template <class Body>
outcome attempt(comm::options const& options, Body&& body) {
  comm::world fresh(world(), options);
  outcome result;
  auto const start = comm::clock::now();
  try {
    fresh.run([&] { body(fresh); });
  } catch (...) {
    auto const f = comm::current_failure(rank());
    result.kind = f.kind;
    result.text = f.text;
  }
  result.seconds = comm::seconds_since(start);
  return result;
}

}  // namespace dtm::testing
