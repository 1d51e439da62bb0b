#pragma once
// Devices that are not there. A context of planned<Device> has the memory account and the ledger that one
// of Device would have on the same rank of the same mesh; its tensors have types, shapes and sizes, and no
// values. Nothing is computed and nothing is sent.
//
//   comm::planned_world rank(64, 27);
//   context<planned<host>, grid> ctx(rank, {1, 8, 8});
//
// Options say what else decides about memory there.

#include <cstdint>
#include <string>

#include "dtm/backend/context.hpp"
#include "dtm/backend/host/instructions.hpp"
#include "dtm/backend/planned/addresses.hpp"
#include "dtm/comm/planned_group.hpp"
#include "dtm/comm/transport.hpp"

namespace dtm {

template <class Device>
struct ranks_of<planned<Device>> {
  using world = comm::planned_world;
  using groups = comm::planned_mesh_groups;
};

/// What a planned device may be told about the real one.
template <class Device>
struct planned_options;

template <>
struct planned_options<host> {
  /// All ranks' processors have them; workspaces of loops depend on it.
  instruction_set instructions = widest_instructions();

  /// As the host's option: groups on one node read each other's memory, others send messages.
  comm::transport transport = comm::transport::by_topology;
  int ranks_per_node = 0;  // in the order of the ranks; 0: all are on one node

  comm::planned_transport planned_as(memory& storage, int ranks) const {
    int const together = ranks_per_node > 0 ? ranks_per_node : ranks;
    if (transport == comm::transport::shared_memory && together < ranks)
      throw mesh_error("dtm planner: transport::shared_memory, and " + std::to_string(ranks) +
                       " ranks are on nodes of " + std::to_string(together) +
                       "; take transport::by_topology");
    return {&storage, false, transport == comm::transport::messages ? 0 : together};
  }
};

template <>
struct planned_options<emulated> {
  /// Copies of messages are on no account.
  comm::planned_transport planned_as(memory&, int) const { return {}; }
};

template <>
struct planned_options<cuda> {
  bool own_products = false;  // kernels of the library instead of cuBLAS
  bool staged_mpi = false;    // tiles travel through the host instead of by NCCL

  /// Neither copies on the account: NCCL has none, staged ones are the host's.
  comm::planned_transport planned_as(memory&, int) const { return {nullptr, !staged_mpi, 0}; }
};

template <class Device>
class backend<planned<Device>> {
 public:
  using options = planned_options<Device>;

  backend(comm::planned_world& world, options chosen) : chosen_(chosen), ranks_(world.size()) {}
  backend(backend const&) = delete;
  backend& operator=(backend const&) = delete;

  void attach(memory& storage) { addresses_.attach(storage); }
  void connect(comm::planned_mesh_groups& groups, memory& storage) {
    groups.plan_as(chosen_.planned_as(storage, ranks_));
  }
  comm::planned_group& along(comm::planned_mesh_groups& groups, unsigned axis_mask) {
    return groups.along(axis_mask);
  }
  template <class Kernel>
  void launch(std::int64_t, Kernel const&) {}
  void finish() {}

  options const& chosen() const { return chosen_; }

 private:
  options chosen_;
  int ranks_;
  detail::planned_addresses addresses_;
};

}  // namespace dtm
