#pragma once
// The arithmetic of a mesh of ranks, numbered row-major over its axes, the last axis fastest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dtm/core/errors.hpp>

namespace dtm::comm::detail {

/// "dp=1 x cp0=2 x cp1=2"
inline std::string mesh_text(std::vector<std::string> const& names, std::vector<int> const& sizes) {
  std::string text;
  for (std::size_t axis = 0; axis < names.size(); ++axis)
    text += (axis ? " x " : "") + names[axis] + "=" +
            (axis < sizes.size() ? std::to_string(sizes[axis]) : std::string("?"));
  return text.empty() ? "no axes" : text;
}

/// Throws mesh_error; the same on all ranks where they agree on the shape.
inline void refuse_bad_mesh(std::vector<std::string> const& names, std::vector<int> const& sizes,
                            int ranks) {
  if (names.size() != sizes.size() || sizes.size() > 8)
    throw mesh_error(
        "a mesh has as many names as sizes and at most 8 axes: " + std::to_string(names.size()) +
        " names, " + std::to_string(sizes.size()) + " sizes");
  auto const shape = mesh_text(names, sizes);
  std::int64_t product = 1;
  for (int size : sizes) {
    if (size < 1) throw mesh_error("mesh " + shape + ": every axis has at least one rank");
    product = std::min(product * size, std::int64_t(1) << 31);  // enough to be wrong
  }
  if (product != ranks)
    throw mesh_error("mesh " + shape + " has " + std::to_string(product) +
                     " places, but there are " + std::to_string(ranks) +
                     " ranks: start the program with mpiexec -n " + std::to_string(product) +
                     " or choose sizes whose product is " + std::to_string(ranks));
}

inline std::vector<int> mesh_coordinates(std::vector<int> const& sizes, int rank) {
  std::vector<int> coordinates(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0; rank /= sizes[axis])
    coordinates[axis] = rank % sizes[axis];
  return coordinates;
}

/// Ranks that differ from the one at `coordinates` only in the axes of the mask, in row-major order.
inline std::vector<int> mesh_members(std::vector<int> const& sizes,
                                     std::vector<int> const& coordinates, unsigned mask) {
  std::vector<int> found{0};
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    std::vector<int> longer;
    for (int base : found)
      if (mask >> axis & 1u)
        for (int i = 0; i < sizes[axis]; ++i) longer.push_back(base * sizes[axis] + i);
      else
        longer.push_back(base * sizes[axis] + coordinates[axis]);
    found = std::move(longer);
  }
  return found;
}

/// "cp0*cp1"
inline std::string mesh_axes(std::vector<std::string> const& names, unsigned mask) {
  std::string text;
  for (std::size_t axis = 0; axis < names.size(); ++axis)
    if (mask >> axis & 1u) text += (text.empty() ? "" : "*") + names[axis];
  return text.empty() ? "none" : text;
}

}  // namespace dtm::comm::detail
