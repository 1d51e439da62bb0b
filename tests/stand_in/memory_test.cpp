// Device memory: what fresh and freed memory holds, pools in stream order, what is counted.

#include <cmath>

#include "device.hpp"

using namespace stand_in_test;

namespace {

cudaMemPool_t make_pool(std::uint64_t threshold) {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  DTM_OK(cudaMemPoolCreate(&pool, &properties));
  DTM_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  return pool;
}

float* take(cudaMemPool_t pool, std::size_t count, cudaStream_t stream) {
  void* memory = nullptr;
  DTM_OK(cudaMallocFromPoolAsync(&memory, count * sizeof(float), pool, stream));
  return static_cast<float*>(memory);
}

float first_of(float const* device) {
  float value = 0;
  stand_in::peek(&value, device, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("fresh device memory is not a number") {
  fresh const each;
  array<double> x(100);
  for (double value : x.now()) CHECK(std::isnan(value));
  cudaPointerAttributes attributes;
  DTM_OK(cudaPointerGetAttributes(&attributes, x.data()));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  DTM_OK(cudaPointerGetAttributes(&attributes, &attributes));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("a pool hands the memory out again, in the order of the stream and as not a number") {
  fresh const each;
  auto const pool = make_pool(1 << 30);
  stream s;
  array<float> seen(2);
  float* const first = take(pool, 64, s);
  DTM_OK(cudaMemsetAsync(first, 0, 64 * sizeof(float), s));
  add(s, seen.data(), first, 1, 1);
  DTM_OK(cudaFreeAsync(first, s));
  float* const second = take(pool, 60, s);
  CHECK(second == first);  // though nothing has run yet
  add(s, seen.data() + 1, second, 1, 1);
  DTM_OK(cudaFreeAsync(second, s));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(seen.now()[0] == 1);
  CHECK(std::isnan(seen.now()[1]));
  CHECK(stand_in::count().pool_allocations == 2);
  DTM_OK(cudaMemPoolDestroy(pool));
}

TEST_CASE("another stream gets the memory only when its free has run") {
  fresh const each;
  auto const pool = make_pool(1 << 30);
  stream a, b;
  float* const first = take(pool, 64, a);
  DTM_OK(cudaFreeAsync(first, a));
  float* const second = take(pool, 64, b);
  CHECK(second != first);
  DTM_OK(cudaStreamSynchronize(a));
  float* const third = take(pool, 64, b);
  CHECK(third == first);
  DTM_OK(cudaFreeAsync(second, b));
  DTM_OK(cudaFreeAsync(third, b));
  DTM_OK(cudaStreamSynchronize(b));
  DTM_OK(cudaMemPoolDestroy(pool));
}

TEST_CASE("an operation that is queued behind the free of its memory reads what is left") {
  fresh const each;
  auto const pool = make_pool(1 << 30);
  stream s, late;
  array<float> seen(1);
  float* const x = take(pool, 1, s);
  DTM_OK(cudaMemsetAsync(x, 0, sizeof(float), s));
  DTM_OK(cudaFreeAsync(x, s));
  add(late, seen.data(), x, 1, 1);  // no event between the streams
  DTM_OK(cudaStreamSynchronize(s));
  DTM_OK(cudaStreamSynchronize(late));
  CHECK(std::isnan(seen.now()[0]));
  DTM_OK(cudaMemPoolDestroy(pool));
}

TEST_CASE("nothing is allocated after the warm-up, unless the pool gives all back") {
  for (bool keeps : {true, false}) {
    fresh const each;
    auto const pool = make_pool(keeps ? std::uint64_t(1) << 30 : 0);
    stream s;
    auto const step = [&] {
      float *const a = take(pool, 1000, s), *const b = take(pool, 500, s);
      DTM_OK(cudaFreeAsync(a, s));
      DTM_OK(cudaFreeAsync(b, s));
      DTM_OK(cudaStreamSynchronize(s));
    };
    step();
    auto const before = stand_in::count().driver_allocations;
    CHECK(before == 2);
    for (int i = 0; i < 5; ++i) step();
    CHECK(stand_in::count().driver_allocations - before == (keeps ? 0 : 10));
    CHECK(stand_in::count().pool_allocations == 12);
    std::uint64_t reserved = 1, used = 1;
    DTM_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    DTM_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CHECK((reserved > 0) == keeps);
    CHECK(used == 0);
    DTM_OK(cudaMemPoolDestroy(pool));
  }
}

TEST_CASE("the default pool serves cudaMallocAsync") {
  fresh const each;
  stream s;
  void* memory = nullptr;
  DTM_OK(cudaMallocAsync(&memory, 16, s));
  CHECK(stand_in::is_device(memory));
  CHECK(stand_in::count().live_bytes == 16);
  DTM_OK(cudaFreeAsync(memory, s));
  CHECK(cudaFreeAsync(memory, s) == cudaErrorInvalidValue);
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(stand_in::count().live_blocks == 0);
}

TEST_CASE("memory ends") {
  fresh const each;
  std::size_t free = 0, total = 0;
  DTM_OK(cudaMemGetInfo(&free, &total));
  void *most = nullptr, *more = nullptr;
  DTM_OK(cudaMalloc(&most, free - 4096 - free / 2));
  CHECK(cudaMalloc(&more, free) == cudaErrorMemoryAllocation);
  CHECK(more == nullptr);
  std::size_t left = 0;
  DTM_OK(cudaMemGetInfo(&left, &total));
  CHECK(left < free);
  DTM_OK(cudaFree(most));
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
}

TEST_CASE("copies are checked") {
  fresh const each;
  array<float> x(4);
  float host[8] = {};
  stream s;
  auto const from_device = [&](void const* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(host, from, bytes, kind, s);
  };
  CHECK(from_device(x.data(), 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(from_device(x.data(), 20, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(from_device(x.data() + 1, 16, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(from_device(x.data() + 1, 12, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(from_device(x.data(), 16, cudaMemcpyDefault) == cudaSuccess);
  CHECK(cudaMemsetAsync(x.data(), 0, 17, s) == cudaErrorInvalidValue);
  CHECK(cudaFree(x.data() + 1) == cudaErrorInvalidValue);
}

TEST_CASE("rows are copied with their pitches") {
  fresh const each;
  array<float> x(std::vector<float>{0, 0, 0, 0, 0, 0});
  std::vector<float> const host{1, 2, 3, 4, 5, 6};
  stream s;
  DTM_OK(cudaMemcpy2DAsync(x.data(), 3 * sizeof(float), host.data() + 1, 3 * sizeof(float),
                           2 * sizeof(float), 2, cudaMemcpyHostToDevice, s));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now() == std::vector<float>{2, 3, 0, 5, 6, 0});
}

TEST_CASE("host memory that is registered is page-locked until it is not") {
  fresh const each;
  std::vector<float> host(100, 1);
  CHECK(!stand_in::is_pinned(host.data()));
  DTM_OK(cudaHostRegister(host.data(), 100 * sizeof(float), cudaHostRegisterDefault));
  CHECK(cudaHostRegister(host.data(), 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(stand_in::is_pinned(host.data(), 100 * sizeof(float)));
  CHECK(!stand_in::is_pinned(host.data(), 101 * sizeof(float)));
  DTM_OK(cudaHostUnregister(host.data()));
  CHECK(cudaHostUnregister(host.data()) == cudaErrorHostMemoryNotRegistered);
  CHECK(!stand_in::is_pinned(host.data()));
  CHECK(stand_in::count().host_allocations == 1);
}

TEST_CASE("cudaFree waits for work that may use the memory") {
  fresh const each;
  stream s;
  array<float> x(std::vector<float>{1}), y(std::vector<float>{0});
  void* memory = nullptr;
  DTM_OK(cudaMalloc(&memory, sizeof(float)));
  auto* const z = static_cast<float*>(memory);
  add(s, z, x.data(), 1, 1);
  add(s, y.data(), z, 1, 1);
  DTM_OK(cudaFree(memory));
  CHECK(y.now() == std::vector<float>{3});
  CHECK(first_of(y.data()) == 3);
}

TEST_CASE("devices have names, numbers and identities") {
  fresh const each;
  int count = 0, device = -1, version = 0, value = 0;
  DTM_OK(cudaGetDeviceCount(&count));
  REQUIRE(count == 2);  // DTM_STAND_IN_DEVICES of this test
  DTM_OK(cudaGetDevice(&device));
  CHECK(device == 0);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  DTM_OK(cudaRuntimeGetVersion(&version));
  CHECK(version == CUDART_VERSION);
  cudaDeviceProp a, b;
  DTM_OK(cudaGetDeviceProperties(&a, 0));
  DTM_OK(cudaGetDeviceProperties(&b, 1));
  CHECK(std::memcmp(a.uuid.bytes, b.uuid.bytes, 16) != 0);
  CHECK(std::string(b.name) == "Stand-in 1");
  DTM_OK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
  CHECK(value == 32);
  char bus[16];
  DTM_OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 1));
  CHECK(std::string(bus) == "0000:02:00.0");
}
