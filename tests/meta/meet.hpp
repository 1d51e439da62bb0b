#pragma once
// A collective of the library in which every rank waits for every other.

#include "support/catch.hpp"
#include "support/runner.hpp"

#if __has_include(<dtm/comm/mesh_groups.hpp>)
#include <dtm/comm/mesh_groups.hpp>
#include <dtm/comm/world.hpp>
inline void meet() {
  auto& world = dtm::testing::world();
  dtm::comm::mesh_groups groups(world, {"all"}, {world.size()});
  groups.along(1).barrier({.operation = "barrier", .where = std::source_location::current()}).wait();
}
#else
inline void meet() {}
#endif
