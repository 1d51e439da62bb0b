#pragma once
// The sets of vector instructions that this processor has.

#include <vector>

#include "dtm/backend/host/instructions.hpp"

namespace dtm::testing {

inline std::vector<instruction_set> instruction_sets() {
  std::vector<instruction_set> sets;
  for (auto set : {instruction_set::portable, instruction_set::avx2, instruction_set::avx512})
    if (set <= widest_instructions()) sets.push_back(set);
  return sets;
}

}  // namespace dtm::testing
