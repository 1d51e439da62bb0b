#pragma once
// Parity of a module on every mesh that the number of ranks allows. The same binary serves them
// all.

#include <cstdint>
#include <utility>
#include <vector>

#include "dtm/testing/parity.hpp"
#include "support/backend.hpp"
#include "support/catch.hpp"
#include "support/meshes.hpp"
#include "support/runner.hpp"

namespace dtm::testing {

inline bool is_square(std::vector<int> const& sizes) {
  return sizes[1] == sizes[2];
}

/// run(ctx) on every mesh.
template <class Run>
void on_meshes(Run run) {
  for (auto const& sizes : meshes()) {
    test_context ctx(world(), sizes, 0, test_options());
    run(ctx);
  }
}

/// N = 12 divides by every mesh of the list; two samples, so that two data ranks have one each.
inline auto usual_extents() {
  return extents{bind<batch>(2), bind<tokens>(12)};
}

/// Where whole rows are dealt to all ranks of the context axes: 12 divides by all but nine of them.
inline std::int64_t tokens_on(std::vector<int> const& sizes) {
  return 12 % (sizes[1] * sizes[2]) == 0 ? 12 : 18;
}
inline auto extents_on(std::vector<int> const& sizes) {
  return extents{bind<batch>(2), bind<tokens>(tokens_on(sizes))};
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
