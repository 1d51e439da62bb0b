#pragma once
// A transient buffer whose bytes are on the account of a context's memory.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dtm/core/memory.hpp"

namespace dtm {

template <class T>
class scratch {
 public:
  scratch() = default;
  scratch(memory& storage, std::int64_t count)
      : storage_(&storage),
        count_(count),
        data_(static_cast<T*>(storage.take(std::size_t(count) * sizeof(T)))) {}
  scratch(scratch&& other) noexcept
      : storage_(other.storage_),
        count_(std::exchange(other.count_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  scratch& operator=(scratch&& other) noexcept {
    std::swap(storage_, other.storage_);
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
    return *this;
  }
  scratch(scratch const&) = delete;
  scratch& operator=(scratch const&) = delete;
  ~scratch() {
    if (storage_ != nullptr) storage_->give_back(data_, std::size_t(count_) * sizeof(T));
  }
  T* data() { return data_; }
  T const* data() const { return data_; }
  std::int64_t size() const { return count_; }

 private:
  memory* storage_ = nullptr;
  std::int64_t count_ = 0;
  T* data_ = nullptr;
};

}  // namespace dtm
