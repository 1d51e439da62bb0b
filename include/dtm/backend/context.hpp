#pragma once
// The context of a program: the mesh with its communicators, the memory account, the check level
// and the random seed. Everything that runs takes it as its first argument; there is no global
// state. Tensors point to the context's memory and must not outlive it.
//
//   context<host, mesh<dp, cp0, cp1>> ctx(world, {1, 2, 2});
//
// The constructor is collective over the world and throws mesh_error on all ranks where the mesh
// does not fit.

#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "dtm/comm/mesh_groups.hpp"
#include "dtm/comm/verify_layout.hpp"
#include "dtm/core/refusals.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/core/tensor.hpp"

namespace dtm {

namespace detail {

inline void* allocate_aligned(std::size_t bytes) {
  void* const pointer = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
inline void release_aligned(void* pointer, std::size_t) noexcept {
  std::free(pointer);
}

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

  context(comm::world& world, std::vector<int> sizes, std::uint64_t seed = 0)
      : world_(world),
        groups_(world, detail::axis_names<Mesh>(), pinned_sizes(sizes)),
        seed_(seed) {
    memory_.allocate = &detail::allocate_aligned;
    memory_.release = &detail::release_aligned;
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
  comm::world& world() { return world_; }
  comm::mesh_groups& groups() { return groups_; }
  comm::ledger& ledger() { return groups_.ledger(); }
  dtm::memory& memory() { return memory_; }
  std::uint64_t seed() const { return seed_; }

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
  comm::group& along() {
    return groups_.along(detail::axis_mask<Mesh, Axis...>);
  }
  comm::group& along_all() { return groups_.along((1u << Mesh::rank) - 1u); }

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

  comm::world& world_;
  comm::mesh_groups groups_;
  dtm::memory memory_;
  site<Mesh> site_;
  std::uint64_t seed_;
};

}  // namespace dtm
