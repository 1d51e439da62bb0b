#pragma once
// The emulator as a device: kernels run on the CPU, fiber by fiber, in guarded memory; tiles are
// exchanged by MPI. A test instrument: everything a GPU would run is run, checked, and tens of
// times slower than the host's own code.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "dtm/backend/context.hpp"
#include "dtm/backend/emulated/launch.hpp"

namespace dtm {

template <>
class backend<emulated> {
 public:
  struct options {
    /// The order of threads and blocks. None: what the environment says, or else each launch takes
    /// the next of ascending, descending and shuffled.
    std::optional<emulation::settings> schedule = std::nullopt;
  };

  backend(comm::world&, options chosen) : schedule_(chosen.schedule) {
    if (!schedule_ && std::getenv("DTM_EMULATED_SCHEDULE") != nullptr)
      schedule_ = emulation::default_settings();
  }
  void attach(memory& storage) {
    storage.allocate = [](void*, std::size_t bytes) { return emulation::allocate(bytes); };
    storage.release = [](void*, void* pointer, std::size_t bytes) noexcept {
      emulation::release(pointer, bytes);
    };
  }
  void connect(comm::mesh_groups&, memory&) {}
  comm::group& along(comm::mesh_groups& groups, unsigned axis_mask) {
    return groups.along(axis_mask);
  }

  template <class Kernel>
  void launch(std::int64_t blocks, Kernel const& kernel) {
    emulation::launch(blocks, kernel, schedule_ ? *schedule_ : next());
  }
  void finish() {}

 private:
  emulation::settings next() {
    constexpr emulation::schedule orders[] = {emulation::schedule::ascending,
                                              emulation::schedule::descending,
                                              emulation::schedule::shuffled};
    ++launches_;
    return {orders[launches_ % 3], launches_};
  }

  std::optional<emulation::settings> schedule_;
  std::uint64_t launches_ = 0;
};

}  // namespace dtm
