#pragma once
// Where a tensor's bytes come from, how the host reaches them, and the account of them: current and
// peak bytes per process, for the memory budgets (law L7). A context owns one; tensors keep a
// pointer to it and must not outlive their context.
//
// Copies that a transport makes of operands and results come from the same memory and are on an
// account of their own, `communication`; current_bytes and peak_bytes are tensors and scratch alone.
//
// Peaks by name:
//
//   {
//     auto const tag = ctx.memory().tagged("triangle_multiplication_outgoing");
//     module.forward(ctx, x, mask);
//   }
//   ctx.memory().marks.find("triangle_multiplication_outgoing")->peak_bytes

#include <cstddef>
#include <cstdint>

#include "dtm/core/memory_marks.hpp"

namespace dtm {

/// A copy inside the memory, from it to the host's, from the host's to it.
enum class copy_direction { within, to_host, from_host };

/// Bytes that are there, and the most that were there at once since the peak was restarted.
struct memory_account {
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;

  void add(std::int64_t bytes) {
    current_bytes += bytes;
    if (current_bytes > peak_bytes) peak_bytes = current_bytes;
  }
  void remove(std::int64_t bytes) { current_bytes -= bytes; }
  void restart_peak() { peak_bytes = current_bytes; }
};

class memory_tag;

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
  /// What was allocated and not released stays valid until the process ends.
  void (*keep)(void* owner) noexcept = [](void*) noexcept {};

  std::int64_t current_bytes = 0;  // tensors and scratch
  std::int64_t peak_bytes = 0;
  memory_account communication;  // copies of operands and results on their way
  memory_account together;       // both
  char const* tag = "";          // the innermost scope, named where memory runs out
  memory_marks marks;            // peaks of the scopes that have ended
  bool fill_fresh =
      false;  // check level 2: a fresh buffer is NaN, so that reading before writing is seen

  void* take(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const pointer = allocate(owner, bytes);
    current_bytes += std::int64_t(bytes);
    if (current_bytes > peak_bytes) peak_bytes = current_bytes;
    together.add(std::int64_t(bytes));
    return pointer;
  }
  void give_back(void* pointer, std::size_t bytes) noexcept {
    if (pointer == nullptr) return;
    release(owner, pointer, bytes);
    current_bytes -= std::int64_t(bytes);
    together.remove(std::int64_t(bytes));
  }
  void* take_for_communication(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    void* const pointer = allocate(owner, bytes);
    communication.add(std::int64_t(bytes));
    together.add(std::int64_t(bytes));
    return pointer;
  }
  void give_back_from_communication(void* pointer, std::size_t bytes) noexcept {
    if (pointer == nullptr) return;
    release(owner, pointer, bytes);
    communication.remove(std::int64_t(bytes));
    together.remove(std::int64_t(bytes));
  }
  void restart_peak() {
    peak_bytes = current_bytes;
    communication.restart_peak();
    together.restart_peak();
  }

  /// Until the end of the scope: bytes are those of `name`, which lives as long as the marks.
  memory_tag tagged(char const* name);

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

/// A scope whose peaks are noted when it ends. Tags nest: what an inner one needs is a part of the
/// outer one's peak.
class [[nodiscard]] memory_tag {
 public:
  memory_tag(memory& storage, char const* tag)
      : storage_(storage), outer_tag_(storage.tag), before_(now(storage)), outer_(peaks(storage)) {
    storage_.tag = tag;
    storage_.restart_peak();
  }
  memory_tag(memory_tag const&) = delete;
  memory_tag& operator=(memory_tag const&) = delete;
  ~memory_tag() {
    storage_.marks.note(so_far());
    raise(storage_.peak_bytes, outer_.tensors);
    raise(storage_.communication.peak_bytes, outer_.communication);
    raise(storage_.together.peak_bytes, outer_.together);
    storage_.tag = outer_tag_;
  }

  /// What is noted if the scope ends now.
  memory_mark so_far() const {
    auto const most = peaks(storage_);
    return {storage_.tag, most.tensors - before_.tensors,
            most.communication - before_.communication, most.together - before_.together, 1};
  }

 private:
  struct figures {
    std::int64_t tensors = 0, communication = 0, together = 0;
  };
  static figures now(memory const& storage) {
    return {storage.current_bytes, storage.communication.current_bytes,
            storage.together.current_bytes};
  }
  static figures peaks(memory const& storage) {
    return {storage.peak_bytes, storage.communication.peak_bytes, storage.together.peak_bytes};
  }
  static void raise(std::int64_t& peak, std::int64_t outer) {
    if (outer > peak) peak = outer;
  }

  memory& storage_;
  char const* outer_tag_;
  figures before_, outer_;
};

inline memory_tag memory::tagged(char const* name) {
  return {*this, name};
}

}  // namespace dtm
