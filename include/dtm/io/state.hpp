#pragma once
// Parameters of a module in a safetensors file, by the serial module's names (law L14): what a
// serial program saved loads here, and the other way round.
//
//   dtm::io::save_state(world, module, "model.safetensors");
//   dtm::io::load_state(world, module, "model.safetensors");
//
// Both are collective. Saving: rank 0 writes, crash-safe. Loading: every rank reads, all must see
// the same content, the set of names and shapes must be the module's, and types must widen without
// loss (fp32 and bf16 files load into fp64). A fault on one rank is the same exception on all;
// parameters are only touched when everything fits.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtm/comm/agreement.hpp"
#include "dtm/io/agreement.hpp"
#include "dtm/io/name_set.hpp"
#include "dtm/io/safetensors_writer.hpp"
#include "dtm/parameters/walk.hpp"

namespace dtm::io {

/// Names, shapes and values of a module's parameters in registration order; borrows the module's
/// memory where that is the host's, otherwise holds copies.
template <class Module>
std::vector<tensor_to_write> state_dict(Module const& module) {
  static_assert(has_values<typename Module::space_type::device>,
                "dtm planner: a planned tensor has no values; plan only what runs without them");
  std::vector<tensor_to_write> state;
  using T = typename Module::element;
  for (auto const& view : named_parameters(module)) {
    if constexpr (std::is_same_v<typename Module::space_type::device, host>) {
      state.push_back(
          to_write(view.name, view.extents, std::span(view.data, std::size_t(view.count))));
    } else {
      auto const copy = std::make_shared<std::vector<T> const>(view.values());
      state.push_back(to_write(view.name, view.extents, std::span(*copy)));
      state.back().owner = copy;
    }
  }
  return state;
}

template <class Module>
void save_state(comm::world& world, Module const& module, std::string const& path,
                metadata_to_write metadata = {}) {
  comm::agree(world, [&] {
    if (world.rank() == 0) write_safetensors(path, state_dict(module), metadata);
  });
}

template <class Module>
void load_state(comm::world& world, Module& module, std::string const& path) {
  auto const file = open_on_all_ranks(world, path);
  require_same_content(world, file);
  using T = typename Module::element;
  auto const views = named_parameters(module);
  auto const values = comm::agree(world, [&] {
    std::vector<named_shape> expected;
    for (auto const& view : views) expected.push_back({view.name, view.extents});
    require_same_names(expected, file);
    std::vector<std::vector<T>> read;
    for (auto const& view : views) read.push_back(file.template read_as<T>(view.name));
    return read;
  });
  for (std::size_t p = 0; p < views.size(); ++p) views[p].assign(values[p]);
}

/// Refused of planned parameters.
template <class Module>
void save_state(comm::planned_world&, Module const&, std::string const&,
                metadata_to_write const& = {}) {
  static_assert(dtm::detail::false_for<Module>,
                "dtm planner: a planned tensor has no values to write; plan without files");
}
template <class Module>
void load_state(comm::planned_world&, Module&, std::string const&) {
  static_assert(dtm::detail::false_for<Module>,
                "dtm planner: a planned tensor has no values, none are read; plan without files");
}

}  // namespace dtm::io
