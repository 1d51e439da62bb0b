#pragma once
// What the tests of the stand-ins share: arrays on the device, and calls that must succeed.

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "gpu/stand_in/stand_in.hpp"
#include "support/catch.hpp"

namespace stand_in_test {

#define DTM_OK(call) REQUIRE(int(call) == 0)

/// An array on the device, filled and read past all queues.
template <class T>
class array {
 public:
  explicit array(std::size_t count) : count_(count) {
    DTM_OK(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
  }
  explicit array(std::vector<T> const& values) : array(values.size()) {
    DTM_OK(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  array(array const&) = delete;
  array& operator=(array const&) = delete;
  ~array() {
    if (data_) cudaFree(data_);
  }

  T* data() { return data_; }
  std::vector<T> now() const {
    std::vector<T> values(count_);
    stand_in::peek(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

struct stream {
  cudaStream_t handle = nullptr;
  explicit stream(unsigned flags = cudaStreamNonBlocking) {
    DTM_OK(cudaStreamCreateWithFlags(&handle, flags));
  }
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { cudaStreamDestroy(handle); }
  operator cudaStream_t() const { return handle; }
};

struct event {
  cudaEvent_t handle = nullptr;
  explicit event(unsigned flags = cudaEventDisableTiming) {
    DTM_OK(cudaEventCreateWithFlags(&handle, flags));
  }
  event(event const&) = delete;
  event& operator=(event const&) = delete;
  ~event() { cudaEventDestroy(handle); }
  operator cudaEvent_t() const { return handle; }
};

/// to[i] = from[i] + value, as an operation of the stream.
inline void add(cudaStream_t stream, float* to, float const* from, float value, std::size_t count) {
  DTM_OK(stand_in::enqueue(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i] + value;
    return true;
  }));
}

/// A fresh stand-in at both ends of a case.
struct fresh {
  fresh() { stand_in::reset(); }
  ~fresh() {
    stand_in::set_seed(0);
    stand_in::reset();
  }
};

}  // namespace stand_in_test
