#pragma once
// A part of a program as one graph, that the GPU runs again without the host's help:
//
//   step();                                     // once as usual: everything is in place then
//   auto graph = capture(ctx, [&] { step(); });  // recorded, not run
//   graph.replay();                             // as often as wanted
//
// A replay works on the addresses that were captured. Memory that the step takes and gives back
// belongs to the graph; what it reads from outside, and what it leaves in tensors, must live as
// long as the graph does. Values that the host computed are as they were. The graph must not
// outlive its context.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "dtm/backend/cuda/backend.hpp"

namespace dtm {

namespace gpu {

class graph {
 public:
  graph(graph&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        kept_(std::move(other.kept_)),
        executable_(std::exchange(other.executable_, nullptr)),
        nodes_(other.nodes_) {}
  graph& operator=(graph&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(kept_, other.kept_);
    std::swap(executable_, other.executable_);
    std::swap(nodes_, other.nodes_);
    return *this;
  }
  ~graph() {
    if (executable_ != nullptr) forget(cudaGraphExecDestroy(executable_));  // when it has run
    if (device_ != nullptr) device_->pool().dissolve(*kept_);
  }

  /// Puts the whole graph into the order of the device's work.
  void replay() { check(cudaGraphLaunch(executable_, device_->compute()), "cudaGraphLaunch"); }
  void operator()() { replay(); }

  /// Kernels, copies, fills, and waits of streams.
  std::size_t nodes() const { return nodes_; }
  /// What it keeps of the device's memory.
  std::int64_t bytes() const { return device_->pool().bytes_of(*kept_); }

  template <class Work>
  static graph of(backend<cuda>& device, Work&& work) {
    if (device.ranks().level() >= comm::check_level::data)
      throw argument_error(
          "dtm cuda: a graph cannot be captured at check level 3, where results are compared on "
          "the host; 2 is possible (DTM_CHECK_LEVEL)");
    graph result(device);
    device.begin_capture(*result.kept_);
    try {
      std::forward<Work>(work)();
    } catch (...) {
      device.abandon_capture();
      throw;
    }
    result.take(device.end_capture());
    return result;
  }

 private:
  explicit graph(backend<cuda>& device)
      : device_(&device), kept_(std::make_unique<pool::region>()) {}

  void take(cudaGraph_t recorded) {
    try {
      check(cudaGraphGetNodes(recorded, nullptr, &nodes_), "cudaGraphGetNodes");
      check(cudaGraphInstantiate(&executable_, recorded, 0), "cudaGraphInstantiate");
    } catch (...) {
      forget(cudaGraphDestroy(recorded));
      throw;
    }
    forget(cudaGraphDestroy(recorded));
  }

  backend<cuda>* device_;
  std::unique_ptr<pool::region> kept_;
  cudaGraphExec_t executable_ = nullptr;
  std::size_t nodes_ = 0;
};

}  // namespace gpu

/// Records what `work` gives to the device. Throws argument_error, and the device is as before,
/// where it needs the host on the way: a copy to or from it, or a wait.
template <class Mesh, class Work>
gpu::graph capture(context<cuda, Mesh>& ctx, Work&& work) {
  return gpu::graph::of(ctx.device(), std::forward<Work>(work));
}

}  // namespace dtm
