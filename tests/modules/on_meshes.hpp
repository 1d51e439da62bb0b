#pragma once
// Parity of a module on every mesh that the number of ranks allows. The same binary serves them
// all.

#include <cstdint>
#include <utility>
#include <vector>

#include "dtm/host.hpp"
#include "dtm/testing/parity.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

namespace dtm::testing {

using grid = mesh<dp, cp0, cp1>;

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

inline bool is_square(std::vector<int> const& sizes) {
  return sizes[1] == sizes[2];
}

/// run(ctx) on every mesh.
template <class Run>
void on_meshes(Run run) {
  for (auto const& sizes : meshes()) {
    context<host, grid> ctx(world(), sizes);
    run(ctx);
  }
}

/// N = 12 divides by every mesh of the list; two samples, so that two data ranks have one each.
inline auto usual_extents() {
  return extents{bind<batch>(2), bind<tokens>(12)};
}

/// Parity on every mesh; `arguments` go to the module's constructor.
template <class Module, class Oracle, class... D, class... Arguments>
void parity_on_meshes(Oracle const& oracle, extents<D...> const& bound, parity_plan const& plan,
                      Arguments const&... arguments) {
  on_meshes([&](auto& ctx) {
    Module module(ctx, arguments...);
    auto const report = parity(ctx, module, oracle, bound, plan);
    INFO(report.text());
    CHECK(report.passed());
  });
}

}  // namespace dtm::testing
