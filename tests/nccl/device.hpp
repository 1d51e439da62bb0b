#pragma once
// A GPU of the stand-in for each rank: compute stream, memory, groups.

#include <dtm/backend/cuda/group.hpp>
#include <dtm/backend/cuda/memory.hpp>
#include <dtm/backend/cuda/staging.hpp>
#include <dtm/comm/communicator.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "comm/fresh_world.hpp"
#include "gpu/stand_in/stand_in.hpp"
#include "support/catch.hpp"

namespace on_device {

using namespace dtm::comm;
using dtm::gpu::cuda_groups;
using dtm::gpu::transport;

/// What a context has of a GPU, without one: the members in the order that frees them well.
class device {
 public:
  explicit device(world& ranks, std::vector<std::string> names, std::vector<int> sizes,
                  transport how = transport::nccl, int number = dtm::testing::rank())
      : mesh(ranks, std::move(names), std::move(sizes)),
        number_(select(number)),
        pool_(number_, compute.native()) {
    storage.owner = this;
    storage.allocate = [](void* self, std::size_t bytes) {
      return static_cast<device*>(self)->pool_.allocate(bytes);
    };
    storage.release = [](void* self, void* pointer, std::size_t) noexcept {
      static_cast<device*>(self)->pool_.release(pointer);
    };
    storage.copy = [](void* self, void* to, void const* from, std::size_t bytes,
                      dtm::copy_direction direction) {
      static_cast<device*>(self)->copy(to, from, bytes, direction);
    };
    storage.fill = [](void* self, void* to, unsigned char value, std::size_t bytes) {
      dtm::gpu::check(
          cudaMemsetAsync(to, value, bytes, static_cast<device*>(self)->compute.native()),
          "cudaMemsetAsync");
    };
    groups.emplace(ranks, mesh, storage, compute.native(), how);
  }

  auto& along(unsigned mask) { return groups->along(mask); }
  void finish() { groups->finish({"finish"}); }

  mesh_groups mesh;

 private:
  int number_;

 public:
  dtm::gpu::stream compute;
  dtm::memory storage;

 private:
  static int select(int number) {
    dtm::gpu::check(cudaSetDevice(number), "cudaSetDevice");
    return number;
  }
  void copy(void* to, void const* from, std::size_t bytes, dtm::copy_direction direction) {
    auto const stream = compute.native();
    auto const wait = [&](auto const& passed) {
      groups->wait_until(passed, make_signature({"copy"}, "device", 0, "", 0));
    };
    if (direction == dtm::copy_direction::to_host)
      buffers_.to_host(to, from, bytes, stream, wait);
    else if (direction == dtm::copy_direction::from_host)
      buffers_.to_device(to, from, bytes, stream, wait);
    else
      dtm::gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                      "cudaMemcpyAsync");
  }

  dtm::gpu::pool pool_;
  dtm::gpu::staging buffers_;

 public:
  std::optional<cuda_groups> groups;
};

/// Elements in the memory of the device.
template <class T>
class array {
 public:
  array(device& gpu, std::size_t count)
      : storage_(&gpu.storage),
        count_(count),
        data_(static_cast<T*>(storage_->take(count * sizeof(T)))) {}
  array(device& gpu, std::vector<T> const& values) : array(gpu, values.size()) {
    storage_->copy_from_host(data_, values.data(), count_ * sizeof(T));
  }
  array(array const&) = delete;
  array& operator=(array const&) = delete;
  ~array() { storage_->give_back(data_, count_ * sizeof(T)); }

  T* data() const { return data_; }
  std::vector<T> on_host() const {
    std::vector<T> values(count_);
    storage_->copy_to_host(values.data(), data_, count_ * sizeof(T));
    return values;
  }
  /// As it is now, whatever is still queued.
  std::vector<T> at_present() const {
    std::vector<T> values(count_);
    stand_in::peek(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  dtm::memory* storage_;
  std::size_t count_;
  T* data_;
};

/// Calls that wait inside of CUDA, of which there may be none.
inline std::int64_t blocking_calls() {
  std::int64_t sum = 0;
  for (auto const* name :
       {"cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaMemcpy",
        "cudaMemset", "cudaMemcpy2D", "cudaMalloc", "cudaFree", "cudaFreeHost"})
    sum += stand_in::calls(name);
  return sum;
}

/// Small and whole, so that sums over nine ranks are exact in every type.
template <class T>
T value(int rank, std::int64_t i) {
  std::int64_t const v = (rank * 7 + i * 3 + rank * i) % 13;
  if constexpr (std::is_same_v<T, dtm::bf16>)
    return T(float(v - 6));
  else if constexpr (std::is_signed_v<T>)
    return T(v - 6);
  else
    return T(v);
}
template <class T>
std::vector<T> values(int rank, std::int64_t count, std::int64_t first = 0) {
  std::vector<T> v;
  for (std::int64_t i = 0; i < count; ++i) v.push_back(value<T>(rank, first + i));
  return v;
}
template <class T>
bool same(std::vector<T> const& a, std::vector<T> const& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline std::vector<int> square() {
  int const n = dtm::testing::ranks();
  return n == 9 ? std::vector{3, 3} : n % 2 == 0 ? std::vector{2, n / 2} : std::vector{1, n};
}

}  // namespace on_device
