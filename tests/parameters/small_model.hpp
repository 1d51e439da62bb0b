#pragma once
// The distogram model at a size for tests, sharded and serial, with equal parameters. Parameters lie
// in the memory of the backend; their values are given and read as vectors.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "dtm/models/distogram_model.hpp"
#include "dtm/serial/distogram_model.hpp"
#include "support/backend.hpp"
#include "support/runner.hpp"

namespace small {

using dtm::testing::grid;
using small_context = dtm::testing::test_context;

/// 2x3 on six ranks, a row otherwise.
inline small_context on_mesh(dtm::comm::world& world = dtm::testing::world()) {
  int const ranks = dtm::testing::ranks();
  std::vector<int> const sizes = ranks == 6 ? std::vector{1, 2, 3} : std::vector{1, 1, ranks};
  return small_context(world, sizes, 0, dtm::testing::test_options());
}

template <class T>
using model = dtm::distogram_model<dtm::testing::space_of<T>, 4, 6>;

inline dtm::serial::distogram_model<double> serial_model(int depth) {
  dtm::serial::distogram_model_options options;
  options.token_s = 6;
  options.token_z = 4;
  options.num_blocks = depth;
  return dtm::serial::distogram_model<double>(options);
}

/// A number that depends on the parameter and the element.
inline double value_of(std::string const& name, std::int64_t index) {
  double key = 0;
  for (char const letter : name) key = std::fmod(key * 31 + letter, 1009);
  return std::sin(key + 0.7 * double(index));
}

/// value(name, index) for every element.
template <class Tree, class Value>
void fill_with(Tree& tree, Value const& value) {
  for (auto const& view : dtm::named_parameters(tree)) {
    auto values = view.values();
    for (std::int64_t i = 0; i < view.count; ++i) values[std::size_t(i)] = value(view.name, i);
    view.assign(values);
  }
}
template <class Tree>
void fill(Tree& tree, double scale = 1) {
  using T = typename Tree::template parameter_element<false>;
  fill_with(tree,
            [&](std::string const& name, std::int64_t i) { return T(scale * value_of(name, i)); });
}

}  // namespace small
