#pragma once
// Where a tensor's bytes come from, how the host reaches them, and the account of them: current and
// peak bytes per process, for the memory budgets (law L7). A context owns one; tensors keep a
// pointer to it and must not outlive their context.

#include <cstddef>
#include <cstdint>

namespace dtm {

/// A copy inside the memory, from it to the host's, from the host's to it.
enum class copy_direction { within, to_host, from_host };

/// Memory of the host by default, but for allocate and release. A device sets all five; what they
/// do is ordered with the device's other work, and a copy to the host is complete on return.
struct memory {
  void* owner = nullptr;                                        // first argument of the functions
  void* (*allocate)(void* owner, std::size_t bytes) = nullptr;  // aligned to 16, host 64; or throws
  void (*release)(void* owner, void* pointer, std::size_t bytes) noexcept = nullptr;
  void (*copy)(void* owner, void* to, void const* from, std::size_t bytes,
               copy_direction direction) = [](void*, void* to, void const* from, std::size_t bytes,
                                              copy_direction) {
    __builtin_memmove(to, from, bytes);
  };
  void (*fill)(void* owner, void* to, unsigned char value,
               std::size_t bytes) = [](void*, void* to, unsigned char value, std::size_t bytes) {
    __builtin_memset(to, value, bytes);
  };
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;
  bool fill_fresh =
      false;  // check level 2: a fresh buffer is NaN, so that reading before writing is seen

  void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const pointer = allocate(owner, bytes);
    current_bytes += std::int64_t(bytes);
    if (current_bytes > peak_bytes) peak_bytes = current_bytes;
    return pointer;
  }
  void give_back(void* pointer, std::size_t bytes) noexcept {
    if (pointer == nullptr) return;
    release(owner, pointer, bytes);
    current_bytes -= std::int64_t(bytes);
  }
  void restart_peak() { peak_bytes = current_bytes; }

  void copy_within(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0 && to != from) copy(owner, to, from, bytes, copy_direction::within);
  }
  void copy_to_host(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0) copy(owner, to, from, bytes, copy_direction::to_host);
  }
  void copy_from_host(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0) copy(owner, to, from, bytes, copy_direction::from_host);
  }
  /// Every byte set to `value`: 0 is zero, 255 is NaN in every floating type.
  void fill_bytes(void* to, unsigned char value, std::size_t bytes) {
    if (bytes != 0) fill(owner, to, value, bytes);
  }
};

}  // namespace dtm
