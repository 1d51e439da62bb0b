#pragma once
// Where a tensor's bytes come from, and the account of them: current and peak bytes per process,
// for the memory budgets (law L7). A context owns one; tensors keep a pointer to it and must not
// outlive their context.

#include <cstddef>
#include <cstdint>

namespace dtm {

struct memory {
  void* (*allocate)(std::size_t bytes) = nullptr;  // aligned to 64 bytes, or throws
  void (*release)(void* pointer, std::size_t bytes) noexcept = nullptr;
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;
  bool fill_fresh =
      false;  // check level 2: a fresh buffer is NaN, so that reading before writing is seen

  void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const pointer = allocate(bytes);
    current_bytes += std::int64_t(bytes);
    if (current_bytes > peak_bytes) peak_bytes = current_bytes;
    return pointer;
  }
  void give_back(void* pointer, std::size_t bytes) noexcept {
    if (pointer == nullptr) return;
    release(pointer, bytes);
    current_bytes -= std::int64_t(bytes);
  }
  void restart_peak() { peak_bytes = current_bytes; }
};

}  // namespace dtm
