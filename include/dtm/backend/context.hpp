#pragma once
// The context of a program: the mesh with its communicators, the memory account, the check level
// and the random seed. Everything that runs takes it as its first argument; there is no global
// state. Tensors point to the context's memory and must not outlive it.
//
//   context<host, mesh<dp, cp0, cp1>> ctx(world, {1, 2, 2});
//
// Its groups() exchange numbers of the host; along<axes>() exchanges tiles, wherever the device has
// them. The constructor is collective over the world and throws mesh_error on all ranks where the mesh
// does not fit.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dtm/comm/mesh_groups.hpp"
#include "dtm/comm/verify_layout.hpp"
#include "dtm/core/refusals.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/core/tensor.hpp"

namespace dtm {

/// What a context has of its device: memory, how ranks exchange it, how kernels are launched. Not
/// defined here; a backend header defines it, and forgetting that header is one error that names,
/// say, backend<dtm::host> as incomplete.
///
///   using options                            run-time choices, the last argument of a context
///   backend(comm::world&, options)           may be collective
///   attach(memory&)                          sets the memory's functions
///   connect(comm::mesh_groups&, memory&)     once, when the groups are there; may be collective
///   along(comm::mesh_groups&, unsigned mask) the communicator for tiles, comm/communicator.hpp
///   launch(blocks, kernel)                   of a device that runs kernels (kernels/block.hpp)
///   finish()                                 waits for all work that was begun
template <class Device>
class backend;

/// The ranks that a device's contexts are among, and their groups.
template <class Device>
struct ranks_of {
  using world = comm::world;
  using groups = comm::mesh_groups;
};

namespace detail {

template <class Mesh>
std::vector<std::string> axis_names() {
  std::vector<std::string> names;
  for (int axis = 0; axis < Mesh::rank; ++axis) names.emplace_back(Mesh::axis_name(axis));
  return names;
}

}  // namespace detail

template <class Device, class Mesh>
class context {
 public:
  using device_type = Device;
  using mesh_type = Mesh;
  using world_type = typename ranks_of<Device>::world;
  using groups_type = typename ranks_of<Device>::groups;

  using options = typename backend<Device>::options;

  context(world_type& world, std::vector<int> sizes, std::uint64_t seed = 0, options chosen = {})
      : world_(world),
        groups_(world, detail::axis_names<Mesh>(), pinned_sizes(sizes)),
        seed_(seed),
        backend_(world, std::move(chosen)) {
    backend_.attach(memory_);
    backend_.connect(groups_, memory_);
    memory_.fill_fresh = int(world.level()) >= int(comm::check_level::signatures);
    for (int axis = 0; axis < Mesh::rank; ++axis) {
      site_.sizes[axis] = groups_.size(axis);
      site_.coordinates[axis] = groups_.coordinate(axis);
    }
    site_.storage = &memory_;
  }
  context(context const&) = delete;
  context& operator=(context const&) = delete;

  site<Mesh> const& where() const { return site_; }
  world_type& world() { return world_; }
  groups_type& groups() { return groups_; }
  comm::ledger& ledger() { return groups_.ledger(); }
  dtm::memory& memory() { return memory_; }
  std::uint64_t seed() const { return seed_; }
  backend<Device>& device() { return backend_; }

  template <class Axis>
  int size() const {
    return site_.sizes[Mesh::template index<Axis>()];
  }
  template <class Axis>
  int coordinate() const {
    return site_.coordinates[Mesh::template index<Axis>()];
  }
  /// The ranks that differ only in these axes.
  template <class... Axis>
  auto& along() {
    return backend_.along(groups_, detail::axis_mask<Mesh, Axis...>);
  }
  auto& along_all() { return backend_.along(groups_, (1u << Mesh::rank) - 1u); }

  /// Runs a kernel on every block of a grid; what was launched before is complete or comes first.
  template <class Kernel>
  void launch(std::int64_t blocks, Kernel const& kernel) {
    backend_.launch(blocks, kernel);
  }
  /// Waits for everything the device was given. Throws what a failure or the deadline makes of it.
  void finish() { backend_.finish(); }

 private:
  static std::vector<int> pinned_sizes(std::vector<int> const& sizes) {
    if (int(sizes.size()) != Mesh::rank)
      throw mesh_error("dtm mesh: " + std::to_string(sizes.size()) +
                       " sizes were given for a mesh of " + std::to_string(Mesh::rank) + " axes");
    for (int axis = 0; axis < Mesh::rank; ++axis) {
      int const pinned = Mesh::static_size(axis);
      if (pinned > 0 && pinned != sizes[std::size_t(axis)])
        throw mesh_error("dtm mesh: axis " + std::string(Mesh::axis_name(axis)) + " is pinned to " +
                         std::to_string(pinned) + " and was given " +
                         std::to_string(sizes[std::size_t(axis)]));
    }
    return sizes;
  }

  world_type& world_;
  groups_type groups_;
  dtm::memory memory_;
  site<Mesh> site_;
  std::uint64_t seed_;
  backend<Device> backend_;
};

}  // namespace dtm
