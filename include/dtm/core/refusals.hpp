#pragma once
// The words of the run-time checks that core/ declares in refuse.hpp.

#include <string>

#include "dtm/core/errors.hpp"
#include "dtm/core/refuse.hpp"

namespace dtm::detail {

inline void refuse_uneven(char const* dimension, std::int64_t extent, char const* axes,
                          std::int64_t parts) {
  std::int64_t const next = (extent / parts + 1) * parts;
  throw layout_error(
      "dtm layout: dimension " + std::string(dimension) + " has extent " + std::to_string(extent) +
      ", which does not divide by the " + std::to_string(parts) + " shards of mesh axis " + axes +
      "; the next extent that fits is " + std::to_string(next) + " (pad and mask the data)");
}

inline void refuse_extent(char const* dimension, std::int64_t extent) {
  throw layout_error("dtm layout: dimension " + std::string(dimension) +
                     " has the negative extent " + std::to_string(extent));
}

inline void refuse_local_size(char const* what, std::int64_t got, std::int64_t expected) {
  throw layout_error("dtm " + std::string(what) + ": the local block has " + std::to_string(got) +
                     " elements, its layout says " + std::to_string(expected));
}

}  // namespace dtm::detail
