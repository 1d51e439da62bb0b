#pragma once
// The meshes that tests try, so that one binary serves every number of ranks.

#include <string>
#include <vector>

#include "runner.hpp"

namespace dtm::testing {

/// Sizes of the axes dp, cp0 and cp1, for as many ranks as run.
inline std::vector<std::vector<int>> meshes() {
  switch (ranks()) {
    case 1:
      return {{1, 1, 1}};
    case 2:
      return {{1, 1, 2}, {1, 2, 1}, {2, 1, 1}};
    case 3:
      return {{1, 1, 3}, {1, 3, 1}};
    case 4:
      return {{1, 2, 2}};
    case 6:
      return {{1, 2, 3}, {1, 3, 2}};
    case 8:
      return {{2, 2, 2}};
    case 9:
      return {{1, 3, 3}};
  }
  skip("no mesh of the list has " + std::to_string(ranks()) + " ranks");
}

}  // namespace dtm::testing
