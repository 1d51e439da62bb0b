// Streams and events: when operations run, what orders them, and what a missing order shows.

#include "device.hpp"

using namespace stand_in_test;

TEST_CASE("an operation runs when somebody waits, not before") {
  fresh const each;
  array<float> x(std::vector<float>{1, 2, 3});
  stream s;
  add(s, x.data(), x.data(), 10, 3);
  CHECK(x.now() == std::vector<float>{1, 2, 3});
  CHECK(stand_in::queued(s) == 1);
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now() == std::vector<float>{11, 12, 13});
  CHECK(stand_in::queued() == 0);
}

TEST_CASE("page-locked host memory is read and written when the stream gets there") {
  fresh const each;
  array<float> x(std::vector<float>{1});
  stream s;
  void* memory = nullptr;
  DTM_OK(cudaHostAlloc(&memory, sizeof(float), cudaHostAllocDefault));
  auto* const host = static_cast<float*>(memory);
  *host = 5;
  DTM_OK(cudaMemcpyAsync(x.data(), host, sizeof(float), cudaMemcpyHostToDevice, s));
  *host = 6;  // too early: the copy takes this one
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now() == std::vector<float>{6});

  add(s, x.data(), x.data(), 1, 1);
  DTM_OK(cudaMemcpyAsync(host, x.data(), sizeof(float), cudaMemcpyDeviceToHost, s));
  CHECK(*host == 6);  // a host that reads before it waits sees what was there
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(*host == 7);
  DTM_OK(cudaFreeHost(memory));
}

TEST_CASE("a pageable source is copied at once, a pageable destination is there on return") {
  fresh const each;
  array<float> x(std::vector<float>{1});
  stream s;
  float value = 5;
  DTM_OK(cudaMemcpyAsync(x.data(), &value, sizeof value, cudaMemcpyHostToDevice, s));
  value = 6;
  CHECK(x.now() == std::vector<float>{1});
  DTM_OK(cudaMemcpyAsync(&value, x.data(), sizeof value, cudaMemcpyDeviceToHost, s));
  CHECK(value == 5);
}

TEST_CASE("an event orders two streams, and without it the order is wrong") {
  for (bool dropped : {false, true}) {
    fresh const each;
    array<float> x(std::vector<float>{1}), y(std::vector<float>{0});
    stream producer, consumer;
    event ready;
    if (dropped) stand_in::drop_waits(1);
    add(producer, x.data(), x.data(), 1, 1);
    DTM_OK(cudaEventRecord(ready, producer));
    DTM_OK(cudaStreamWaitEvent(consumer, ready, 0));
    add(consumer, y.data(), x.data(), 10, 1);
    DTM_OK(cudaStreamSynchronize(consumer));
    CHECK(y.now() == std::vector<float>{dropped ? 11.f : 12.f});
    DTM_OK(cudaDeviceSynchronize());
    CHECK(x.now() == std::vector<float>{2});
  }
}

TEST_CASE("orders that are drawn respect events and show what has none") {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (bool dropped : {false, true}) {
      fresh const each;
      stand_in::set_seed(seed);
      array<float> x(std::vector<float>{1}), y(std::vector<float>{0});
      stream producer, consumer;
      event ready;
      if (dropped) stand_in::drop_waits(1);
      add(producer, x.data(), x.data(), 1, 1);
      DTM_OK(cudaEventRecord(ready, producer));
      DTM_OK(cudaStreamWaitEvent(consumer, ready, 0));
      add(consumer, y.data(), x.data(), 10, 1);
      DTM_OK(cudaStreamSynchronize(consumer));
      bool const right = y.now() == std::vector<float>{12};
      if (!dropped) CHECK(right);
      wrong += !right;
      DTM_OK(cudaDeviceSynchronize());
    }
  }
  CHECK(wrong > 3);
  CHECK(wrong < 20);
}

TEST_CASE("a wait is for the record before it, not for a later one") {
  fresh const each;
  array<float> x(std::vector<float>{0}), y(std::vector<float>{0});
  stream a, b;
  event e;
  DTM_OK(cudaStreamWaitEvent(b, e, 0));  // never recorded: nothing to wait for
  add(a, x.data(), x.data(), 1, 1);
  DTM_OK(cudaEventRecord(e, a));
  DTM_OK(cudaStreamWaitEvent(b, e, 0));
  add(a, x.data(), x.data(), 1, 1);
  DTM_OK(cudaEventRecord(e, a));
  add(b, y.data(), x.data(), 0, 1);
  DTM_OK(cudaStreamSynchronize(b));
  CHECK(y.now() == std::vector<float>{1});
  CHECK(cudaEventQuery(e) == cudaErrorNotReady);
  while (cudaEventQuery(e) != cudaSuccess) {
  }
  CHECK(x.now() == std::vector<float>{2});
}

TEST_CASE("operations that are polled hold up their own stream only") {
  fresh const each;
  array<float> x(std::vector<float>{0});
  stream waiting, other;
  bool open = false;
  DTM_OK(stand_in::enqueue(waiting, [&] { return open; }));
  add(waiting, x.data(), x.data(), 100, 1);
  add(other, x.data(), x.data(), 1, 1);
  DTM_OK(cudaStreamSynchronize(other));
  CHECK(x.now() == std::vector<float>{1});
  for (int i = 0; i < 10; ++i) CHECK(cudaStreamQuery(waiting) == cudaErrorNotReady);
  CHECK(x.now() == std::vector<float>{1});
  DTM_OK(stand_in::enqueue(other, [&] { return open = true; }));
  DTM_OK(cudaStreamSynchronize(waiting));  // the other stream moves meanwhile
  CHECK(x.now() == std::vector<float>{101});
}

TEST_CASE("the default stream waits for the streams that heed it, and they for it") {
  fresh const each;
  array<float> x(std::vector<float>{1});
  stream heeds(cudaStreamDefault), does_not;
  add(heeds, x.data(), x.data(), 1, 1);
  add(nullptr, x.data(), x.data(), 10, 1);
  DTM_OK(cudaStreamSynchronize(nullptr));
  CHECK(x.now() == std::vector<float>{12});
  add(nullptr, x.data(), x.data(), 1, 1);
  add(heeds, x.data(), x.data(), 10, 1);
  DTM_OK(cudaStreamSynchronize(heeds));
  CHECK(x.now() == std::vector<float>{23});
  add(nullptr, x.data(), x.data(), 1, 1);
  add(does_not, x.data(), x.data(), 10, 1);
  DTM_OK(cudaStreamSynchronize(does_not));
  CHECK(x.now() == std::vector<float>{33});
  CHECK(stand_in::queued(cudaStream_t(nullptr)) == 1);
}

TEST_CASE("work outlives the handle of its stream") {
  fresh const each;
  array<float> x(std::vector<float>{1});
  {
    stream s;
    add(s, x.data(), x.data(), 1, 1);
  }
  CHECK(x.now() == std::vector<float>{1});
  DTM_OK(cudaDeviceSynchronize());
  CHECK(x.now() == std::vector<float>{2});
}

TEST_CASE("the time between events is the time between their records") {
  fresh const each;
  stream s;
  event first(cudaEventDefault), last(cudaEventDefault), untimed;
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, first, last) == cudaErrorInvalidResourceHandle);
  DTM_OK(cudaEventRecord(first, s));
  DTM_OK(cudaEventRecord(last, s));
  DTM_OK(cudaEventRecord(untimed, s));
  CHECK(cudaEventElapsedTime(&milliseconds, first, last) == cudaErrorNotReady);
  DTM_OK(cudaEventSynchronize(last));
  DTM_OK(cudaEventElapsedTime(&milliseconds, first, last));
  CHECK(milliseconds >= 0);
  CHECK(cudaEventElapsedTime(&milliseconds, first, untimed) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("handles that do not exist are refused") {
  fresh const each;
  cudaStream_t gone = nullptr;
  DTM_OK(cudaStreamCreate(&gone));
  DTM_OK(cudaStreamDestroy(gone));
  CHECK(cudaStreamSynchronize(gone) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaSuccess);
  stream s;
  cudaEvent_t never = nullptr;
  CHECK(cudaEventRecord(never, s) == cudaErrorInvalidResourceHandle);
}

TEST_CASE("the n-th call of a function fails where a test planted that") {
  fresh const each;
  stand_in::fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  void *first = nullptr, *second = nullptr;
  DTM_OK(cudaMalloc(&first, 16));
  CHECK(cudaMalloc(&second, 16) == cudaErrorMemoryAllocation);
  CHECK(second == nullptr);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(std::string(cudaGetErrorName(cudaGetLastError())) == "cudaErrorMemoryAllocation");
  DTM_OK(cudaMalloc(&second, 16));
  DTM_OK(cudaFree(first));
  DTM_OK(cudaFree(second));
  CHECK(stand_in::calls("cudaMalloc") == 3);
}

TEST_CASE("an error of an operation comes with a later call and sticks") {
  fresh const each;
  array<float> x(std::vector<float>{1});
  {
    stream s;
    DTM_OK(stand_in::enqueue_fault(s));
    add(s, x.data(), x.data(), 1, 1);
    DTM_OK(cudaPeekAtLastError());
    CHECK(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
    void* memory = nullptr;
    CHECK(cudaMalloc(&memory, 16) == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(x.now() == std::vector<float>{1});
    stand_in::reset();
  }
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("an operation may not call CUDA") {
  fresh const each;
  stream s;
  cudaError_t inside = cudaSuccess;
  DTM_OK(stand_in::enqueue(s, [&] { return inside = cudaStreamSynchronize(nullptr), true; }));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(inside == cudaErrorNotPermitted);
}
