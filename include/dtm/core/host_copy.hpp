#pragma once
// A tile where the host may read it: the tile itself on the host, a copy of it elsewhere. For
// checks, files and reports; a copy waits for the device, so nothing on the way of a forward or
// backward pass asks for one.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "dtm/core/device.hpp"
#include "dtm/core/memory.hpp"
#include "dtm/core/tensor.hpp"

namespace dtm {

template <class T, class Device>
class host_copy {
 public:
  host_copy(memory& storage, T const* data, std::int64_t count) : host_copy(count) {
    if constexpr (std::is_same_v<Device, host>) {
      data_ = data;
    } else {
      data_ = copy_ = new T[std::size_t(count)];  // freed if the copy throws
      storage.copy_to_host(copy_, data, std::size_t(count) * sizeof(T));
    }
  }
  host_copy(host_copy const&) = delete;
  host_copy& operator=(host_copy const&) = delete;
  ~host_copy() { delete[] copy_; }

  T const* data() const { return data_; }
  T const* begin() const { return data_; }
  T const* end() const { return data_ + count_; }
  std::int64_t size() const { return count_; }
  std::int64_t bytes() const { return count_ * std::int64_t(sizeof(T)); }
  T const& operator[](std::int64_t i) const { return data_[i]; }

 private:
  explicit host_copy(std::int64_t count) : count_(count) {}

  std::int64_t count_;
  T const* data_ = nullptr;
  T* copy_ = nullptr;
};

template <class T, class Layout, class Device>
host_copy<T, Device> on_host(tensor<T, Layout, Device> const& x) {
  static_assert(has_values<Device>,
                "dtm planner: a planned tensor has no values; plan only what runs without them");
  return host_copy<T, Device>(*x.where().storage, x.data(), x.size());
}

}  // namespace dtm
