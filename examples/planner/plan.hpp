#pragma once
// One row of the table for each piece of work: the most of every number over all ranks.

#include <cstdint>
#include <string>
#include <vector>

#include <dtm/backend/measure.hpp>

#include "options.hpp"

namespace example {

struct row {
  std::string subject, work;  // "transition", "forward"
  dtm::measurement cost;
};

struct plan {
  std::vector<row> rows;
  std::int64_t most_bytes = 0;  // on a rank at once, of the model's training: everything
};

/// Plays every rank. Throws what the ranks would, and collective_mismatch.
template <class Device, class T>
plan plan_all(options const& chosen);

/// Prints the table.
void print(options const& chosen, plan const& made);

}  // namespace example
