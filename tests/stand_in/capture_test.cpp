// Capture and replay of graphs, and what may not be done meanwhile.

#include "device.hpp"

using namespace stand_in_test;

namespace {

cudaGraphExec_t instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  DTM_OK(cudaGraphInstantiate(&executable, graph, 0));
  DTM_OK(cudaGraphDestroy(graph));
  return executable;
}

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  DTM_OK(cudaStreamIsCapturing(stream, &status));
  return status;
}

}  // namespace

TEST_CASE("what is captured runs at each launch and not before") {
  fresh const each;
  array<float> x(std::vector<float>{0});
  stream s;
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  CHECK(status_of(s) == cudaStreamCaptureStatusActive);
  unsigned long long id = 0;
  cudaStreamCaptureStatus status;
#if CUDART_VERSION >= 13000
  DTM_OK(cudaStreamGetCaptureInfo(s, &status, &id, nullptr, nullptr, nullptr, nullptr));
#else
  DTM_OK(cudaStreamGetCaptureInfo(s, &status, &id, nullptr, nullptr, nullptr));
#endif
  CHECK(id > 0);
  add(s, x.data(), x.data(), 1, 1);
  add(s, x.data(), x.data(), 1, 1);
  cudaGraph_t graph = nullptr;
  DTM_OK(cudaStreamEndCapture(s, &graph));
  std::size_t nodes = 0;
  DTM_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 2);
  auto const executable = instantiate(graph);
  DTM_OK(cudaDeviceSynchronize());
  CHECK(x.now() == std::vector<float>{0});
  for (int i = 0; i < 3; ++i) DTM_OK(cudaGraphLaunch(executable, s));
  CHECK(x.now() == std::vector<float>{0});
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now() == std::vector<float>{6});
  DTM_OK(cudaGraphExecDestroy(executable));
}

TEST_CASE("a stream joins by an event, and a forgotten wait shows at replay") {
  for (int dropped : {0, 1}) {
    for (std::uint64_t seed : {0, 1, 2, 3}) {
      fresh const each;
      stand_in::set_seed(seed);
      array<float> x(std::vector<float>{1}), y(std::vector<float>{0});
      stream s, side;
      event fork, join;
      DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
      DTM_OK(cudaEventRecord(fork, s));
      DTM_OK(cudaStreamWaitEvent(side, fork, 0));
      CHECK(status_of(side) == cudaStreamCaptureStatusActive);
      add(side, x.data(), x.data(), 1, 1);
      DTM_OK(cudaEventRecord(join, side));
      stand_in::drop_waits(dropped);
      DTM_OK(cudaStreamWaitEvent(s, join, 0));
      add(s, y.data(), x.data(), 10, 1);
      cudaGraph_t graph = nullptr;
      if (dropped) {
        CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureUnjoined);
        CHECK(status_of(side) == cudaStreamCaptureStatusNone);
        continue;
      }
      DTM_OK(cudaStreamEndCapture(s, &graph));
      auto const executable = instantiate(graph);
      DTM_OK(cudaGraphLaunch(executable, s));
      DTM_OK(cudaStreamSynchronize(s));
      CHECK(y.now() == std::vector<float>{12});
      DTM_OK(cudaGraphExecDestroy(executable));
    }
  }
}

TEST_CASE("branches of a graph that nothing orders run in the unexpected order") {
  fresh const each;
  array<float> x(std::vector<float>{1}), y(std::vector<float>{0});
  stream s, side;
  event fork, join;
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  DTM_OK(cudaEventRecord(fork, s));
  DTM_OK(cudaStreamWaitEvent(side, fork, 0));
  add(side, x.data(), x.data(), 1, 1);
  DTM_OK(cudaEventRecord(join, side));
  add(s, y.data(), x.data(), 10, 1);  // does not wait for x
  DTM_OK(cudaStreamWaitEvent(s, join, 0));
  cudaGraph_t graph = nullptr;
  DTM_OK(cudaStreamEndCapture(s, &graph));
  auto const executable = instantiate(graph);
  DTM_OK(cudaGraphLaunch(executable, s));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(y.now() == std::vector<float>{11});
  CHECK(x.now() == std::vector<float>{2});
  DTM_OK(cudaGraphExecDestroy(executable));
}

TEST_CASE("a captured operation starts anew at each launch") {
  fresh const each;
  array<float> x(std::vector<float>{0});
  stream s;
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  DTM_OK(stand_in::enqueue(s, [left = 3, x = x.data()]() mutable {
    *x += 1;
    return --left == 0;
  }));
  cudaGraph_t graph = nullptr;
  DTM_OK(cudaStreamEndCapture(s, &graph));
  auto const executable = instantiate(graph);
  for (int i = 1; i <= 3; ++i) {
    DTM_OK(cudaGraphLaunch(executable, s));
    DTM_OK(cudaStreamSynchronize(s));
    CHECK(x.now() == std::vector<float>{3.f * float(i)});
  }
  DTM_OK(cudaGraphExecDestroy(executable));
}

TEST_CASE("calls that a capture does not allow fail and end it") {
  struct forbidden {
    char const* name;
    cudaError_t (*call)(cudaStream_t);
    cudaError_t error;
  };
  static float host = 0;
  static float* device = nullptr;
  static cudaEvent_t recorded = nullptr, captured = nullptr;
  static auto const copy = [](auto* to, auto* from, cudaMemcpyKind kind, cudaStream_t s) {
    return cudaMemcpyAsync(to, from, sizeof(float), kind, s);
  };
  forbidden const calls[] = {
      {"synchronise", [](cudaStream_t s) { return cudaStreamSynchronize(s); },
       cudaErrorStreamCaptureUnsupported},
      {"query", [](cudaStream_t s) { return cudaStreamQuery(s); },
       cudaErrorStreamCaptureUnsupported},
      {"device synchronise", [](cudaStream_t) { return cudaDeviceSynchronize(); },
       cudaErrorStreamCaptureUnsupported},
      {"malloc",
       [](cudaStream_t) {
         void* memory = nullptr;
         return cudaMalloc(&memory, 16);
       },
       cudaErrorStreamCaptureUnsupported},
      {"event query", [](cudaStream_t) { return cudaEventQuery(recorded); },
       cudaErrorStreamCaptureUnsupported},
      {"captured event",
       [](cudaStream_t s) {
         cudaEventRecord(captured, s);
         return cudaEventQuery(captured);
       },
       cudaErrorCapturedEvent},
      {"uncaptured event", [](cudaStream_t s) { return cudaStreamWaitEvent(s, recorded, 0); },
       cudaErrorStreamCaptureIsolation},
      {"copy to pageable memory",
       [](cudaStream_t s) { return copy(&host, device, cudaMemcpyDeviceToHost, s); },
       cudaErrorStreamCaptureUnsupported},
      {"copy from pageable memory",
       [](cudaStream_t s) { return copy(device, &host, cudaMemcpyHostToDevice, s); },
       cudaErrorStreamCaptureUnsupported},
      {"blocking copy",
       [](cudaStream_t) { return cudaMemcpy(&host, device, 4, cudaMemcpyDeviceToHost); },
       cudaErrorStreamCaptureUnsupported},
  };
  fresh const each;
  array<float> x(std::vector<float>{1});
  device = x.data();
  stream s;
  event outside, inside;
  DTM_OK(cudaEventRecord(outside, s));
  DTM_OK(cudaStreamSynchronize(s));
  recorded = outside, captured = inside;
  for (auto const& [name, call, error] : calls) {
    INFO(name);
    DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(call(s) == error);
    CHECK(status_of(s) == cudaStreamCaptureStatusInvalidated);
    CHECK(stand_in::enqueue(s, [] { return true; }) == cudaErrorStreamCaptureInvalidated);
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    CHECK(status_of(s) == cudaStreamCaptureStatusNone);
  }
  cudaGetLastError();
}

TEST_CASE("the default stream and other streams during a capture") {
  fresh const each;
  stream s(cudaStreamDefault), free_one;
  array<float> x(std::vector<float>{1});
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) ==
        cudaErrorStreamCaptureUnsupported);
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add(free_one, x.data(), x.data(), 1, 1);
  DTM_OK(cudaStreamSynchronize(free_one));
  CHECK(x.now() == std::vector<float>{2});
  CHECK(stand_in::enqueue(nullptr, [] { return true; }) == cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  void* memory = nullptr;
  DTM_OK(cudaMalloc(&memory, 16));  // this mode allows it
  DTM_OK(cudaStreamEndCapture(s, &graph));
  DTM_OK(cudaGraphDestroy(graph));
  DTM_OK(cudaFree(memory));
  cudaGetLastError();
}
