#pragma once
// Memory that a transport works on until an operation is complete: of a context, on its account of
// communication, or of the process where there is no context.

#include <cstddef>
#include <new>
#include <utility>

#include <dtm/core/memory.hpp>

namespace dtm::comm {

class buffer {
 public:
  buffer() = default;
  /// Content is unspecified. Without `storage` it comes from the process.
  buffer(memory* storage, std::size_t bytes)
      : storage_(storage),
        bytes_(bytes),
        data_(static_cast<std::byte*>(storage != nullptr ? storage->take_for_communication(bytes)
                                                         : ::operator new(bytes))) {}
  buffer(buffer&& other) noexcept
      : storage_(other.storage_),
        bytes_(other.bytes_),
        data_(std::exchange(other.data_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(storage_, other.storage_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~buffer() {
    if (storage_ != nullptr)
      storage_->give_back_from_communication(data_, bytes_);
    else
      ::operator delete(data_);
  }

  std::byte* get() const { return data_; }
  std::size_t size() const { return bytes_; }

  /// MPI may go on writing: what a context gave stays valid until the process ends, and is no concern
  /// of the context any more.
  void abandon() noexcept {
    if (storage_ == nullptr) return;
    storage_->keep(storage_->owner);
    storage_ = nullptr;
    data_ = nullptr;
  }

 private:
  memory* storage_ = nullptr;
  std::size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace dtm::comm
