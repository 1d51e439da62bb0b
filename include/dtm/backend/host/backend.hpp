#pragma once
// The host as a device: memory from an arena, tiles exchanged by reading each other's memory on one node
// and by MPI between nodes, loops by the vector instructions that all ranks' processors have.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "dtm/backend/context.hpp"
#include "dtm/backend/host/arena.hpp"
#include "dtm/backend/host/instructions.hpp"
#include "dtm/comm/node.hpp"

namespace dtm {

template <>
class backend<host> {
 public:
  struct options {
    /// The widest to use. Ranks agree on the narrowest of what they may and can use: replicated
    /// values are the same bits on different processors.
    instruction_set widest = instruction_set::avx512;
    /// Bytes of tensors and copies of messages that are reserved at once, as a plan foretells them; 0:
    /// memory comes as it is needed. More is added where it does not suffice, up to the limit.
    std::size_t arena_bytes = 0;
    std::size_t arena_limit = 0;  // bytes that may come from the system; 0: no limit
    /// How ranks exchange tiles, the same on all of them. Throws mesh_error on all ranks where they want
    /// different things, or shared memory where they do not have it.
    comm::transport transport = comm::transport::by_topology;
    int ranks_per_node = 0;  // > 0 pretends nodes of so many ranks, to test mixed topologies
  };

  backend(comm::world& ranks, options chosen, comm::call_site where = comm::call_site::current())
      : instructions_(std::min(chosen.widest, widest_instructions())),
        node_(std::make_shared<comm::node>(ranks, chosen.transport, chosen.ranks_per_node, where)) {
    comm::failure failed;
    try {
      arena_ =
          std::make_shared<dtm::arena>(chosen.arena_bytes, chosen.arena_limit, node_->is_shared());
    } catch (memory_error const&) {
      failed = comm::current_failure(ranks.rank());
    }
    agree(ranks, failed, where);
  }
  backend(backend const&) = delete;
  backend& operator=(backend const&) = delete;

  void attach(memory& storage) {
    storage_ = &storage;
    storage.owner = this;
    storage.allocate = [](void* self, std::size_t bytes) {
      auto& mine = *static_cast<backend*>(self);
      return mine.arena_->allocate(bytes, mine.storage_->tag);
    };
    storage.release = [](void* self, void* pointer, std::size_t) noexcept {
      static_cast<backend*>(self)->arena_->release(pointer);
    };
    storage.keep = [](void* self) noexcept {
      comm::detail::keep_until_exit(static_cast<backend*>(self)->arena_);
    };
  }
  void connect(comm::mesh_groups& groups, memory& storage) {
    groups.take_buffers_from(storage);
    if (!node_->is_shared()) return;
    node_->locate = [memory = arena_](void const* pointer) { return memory->place_of(pointer); };
    groups.share(node_);
  }
  comm::group& along(comm::mesh_groups& groups, unsigned axis_mask) {
    return groups.along(axis_mask);
  }
  void finish() {}

  /// What the loops of this context are compiled for, name_of() says it.
  instruction_set instructions() const { return instructions_; }
  /// What memory comes from: blocks of the system, and how much of them is in use.
  dtm::arena const& arena() const { return *arena_; }

 private:
  /// On the instructions; or all throw where a rank has failed.
  void agree(comm::world& ranks, comm::failure const& failed, comm::call_site where) {
    int const mine[] = {int(instructions_), failed.kind != comm::failure_kind::none};
    auto& all = *ranks.all();
    auto const what = all.open({"options of the host", "", 0, where}, "world", "", 0);
    auto const everyones = all.gather<int>(std::span<int const>(mine), what);
    all.close(what);
    bool any_failed = false;
    for (std::size_t i = 0; i < everyones.size(); i += 2) {
      instructions_ = std::min(instructions_, instruction_set(everyones[i]));
      any_failed |= everyones[i + 1] != 0;
    }
    if (any_failed)
      comm::agree(
          ranks,
          [&] {
            if (failed.kind != comm::failure_kind::none) comm::throw_same(failed);
          },
          where);
  }

  instruction_set instructions_;
  std::shared_ptr<comm::node> node_;
  std::shared_ptr<dtm::arena> arena_;
  memory* storage_ = nullptr;
};

}  // namespace dtm
