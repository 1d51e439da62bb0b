#pragma once
// The distogram model at a size for tests, sharded and serial, with equal parameters.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "dtm/host.hpp"
#include "dtm/models/distogram_model.hpp"
#include "dtm/serial/distogram_model.hpp"

namespace small {

using grid = dtm::mesh<dtm::dp, dtm::cp0, dtm::cp1>;

/// 2x3 on six ranks, a row otherwise.
inline std::vector<int> mesh_sizes(int ranks) {
  if (ranks == 6) return {1, 2, 3};
  return {1, 1, ranks};
}

template <class T>
using model = dtm::distogram_model<dtm::space<T, grid>, 4, 6>;

inline dtm::serial::distogram_model<double> serial_model(int depth) {
  dtm::serial::distogram_model_options options;
  options.token_s = 6;
  options.token_z = 4;
  options.hidden = 16;
  options.num_blocks = depth;
  return dtm::serial::distogram_model<double>(options);
}

/// A number that depends on the parameter and the element.
inline double value_of(std::string const& name, std::int64_t index) {
  double key = 0;
  for (char const letter : name) key = std::fmod(key * 31 + letter, 1009);
  return std::sin(key + 0.7 * double(index));
}

template <class Tree>
void fill(Tree& tree, double scale = 1) {
  for (auto const& view : dtm::named_parameters(tree)) {
    using T = std::remove_cvref_t<decltype(*view.data)>;
    for (std::int64_t i = 0; i < view.count; ++i) view.data[i] = T(scale * value_of(view.name, i));
  }
}

}  // namespace small
