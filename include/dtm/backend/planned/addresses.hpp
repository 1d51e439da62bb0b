#pragma once
// Memory that is counted and not there: addresses without anything behind them, so that whoever touches
// one faults at once.

#include <cstddef>
#include <cstdint>
#include <string>

#include "dtm/core/errors.hpp"
#include "dtm/core/memory.hpp"

namespace dtm::detail {

class planned_addresses {
 public:
  /// Sets the functions of a planned device's memory; `this` must outlive it.
  void attach(memory& storage) {
    storage.owner = this;
    storage.allocate = [](void* self, std::size_t bytes) {
      return static_cast<planned_addresses*>(self)->next(bytes);
    };
    storage.release = [](void*, void*, std::size_t) noexcept {};
    storage.copy = [](void*, void*, void const*, std::size_t, copy_direction direction) {
      if (direction == copy_direction::to_host)
        throw argument_error(
            "dtm planner: a planned tensor has no values to copy to the host; plan only what runs "
            "without them");
    };
    storage.fill = [](void*, void*, unsigned char, std::size_t) {};
  }

 private:
  // Aligned as a device's or the host's memory at least, since operations choose by alignment. What was
  // released is given out again only when all there are have been.
  static constexpr std::uintptr_t alignment = 512, first = std::uintptr_t(1) << 55,
                                  last = std::uintptr_t(1) << 56;

  void* next(std::size_t bytes) {
    if (bytes >= last - first)
      throw memory_error("dtm planner: a tensor or buffer of " + std::to_string(bytes) +
                         " bytes is in no machine; take fewer tokens or more ranks");
    std::uintptr_t const room = (bytes + alignment - 1) / alignment * alignment;
    if (room > last - free_) free_ = first;
    void* const address = reinterpret_cast<void*>(free_);
    free_ += room;
    return address;
  }

  std::uintptr_t free_ = first;
};

}  // namespace dtm::detail
