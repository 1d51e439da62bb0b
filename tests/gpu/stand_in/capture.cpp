#include "capture.hpp"

#include <algorithm>
#include <utility>

#include "calls.hpp"

struct CUgraph_st {
  std::vector<stand_in::node> nodes;
};

struct CUgraphExec_st {
  std::vector<stand_in::node> nodes;
  std::shared_ptr<stand_in::completion> last;  // launch: a graph does not overlap with itself
};

namespace stand_in {
namespace {

cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
unsigned long long captures_made = 0;

bool any_capture(bool (*counts)(capture const&), bool invalidate) {
  bool found = false;
  for (auto* stream : live_streams()) {
    if (!stream->capture || !counts(*stream->capture)) continue;
    found = true;
    if (invalidate) stream->capture->invalid = true;
  }
  return found;
}

/// All nodes that lie before the frontier, the frontier included.
std::vector<bool> reached(std::vector<node> const& nodes, std::vector<int> const& frontier) {
  std::vector<bool> seen(nodes.size());
  std::vector<int> open = frontier;
  while (!open.empty()) {
    auto const n = std::size_t(open.back());
    open.pop_back();
    if (seen[n]) continue;
    seen[n] = true;
    open.insert(open.end(), nodes[n].after.begin(), nodes[n].after.end());
  }
  return seen;
}

/// One launch: nodes run as soon as those they come after are complete; a seed draws which first.
struct launch {
  std::vector<node> nodes;
  std::vector<poll> runs;
  std::vector<bool> done;
  std::size_t left = 0;
  std::shared_ptr<completion> before;

  bool advance() {
    if (before && !before->done) return false;
    std::vector<std::size_t> order(nodes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::reverse(order.begin(), order.end());  // the last branch first, where nothing is drawn
    if (the_settings().seed != 0)
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[drawn(i)]);
    for (auto i : order) {
      auto const& after = nodes[i].after;
      if (done[i] || !std::all_of(after.begin(), after.end(),
                                  [&](int n) { return bool(done[std::size_t(n)]); }))
        continue;
      if (!runs[i]()) continue;
      done[i] = true;
      --left;
    }
    return left == 0;
  }
};

}  // namespace

cudaError_t record(CUstream_st& stream, std::string name, start begin) {
  auto& graph = *stream.capture;
  if (graph.invalid) return cudaErrorStreamCaptureInvalidated;
  graph.nodes.push_back({std::move(name), std::move(begin), stream.frontier});
  stream.frontier = {int(graph.nodes.size()) - 1};
  return cudaSuccess;
}

cudaError_t refuse_captured(CUstream_st& stream) {
  if (!stream.capture) return cudaSuccess;
  stream.capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t refuse_implicit(CUstream_st& stream) {
  if (&stream != default_stream()) return cudaSuccess;
  bool found = false;
  for (auto* other : live_streams())
    if (other->capture && other->waits_for_default()) found = other->capture->invalid = true;
  return found ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t refuse_unsafe() {
  if (thread_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  auto const strict = [](capture const& c) { return c.mode != cudaStreamCaptureModeRelaxed; };
  return any_capture(strict, true) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

cudaError_t refuse_while_capturing() {
  return any_capture([](capture const&) { return true; }, true) ? cudaErrorStreamCaptureUnsupported
                                                                : cudaSuccess;
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  DTM_STAND_IN_CUDA();
  auto* const stream = stream_of(handle);
  if (!stream) return returned(cudaErrorInvalidResourceHandle);
  if (stream == default_stream()) return returned(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return returned(cudaErrorIllegalState);
  stream->capture = std::make_shared<capture>();
  stream->capture->id = ++captures_made;
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->frontier.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  DTM_STAND_IN_CUDA();
  *graph = nullptr;
  auto* const stream = stream_of(handle);
  if (!stream) return returned(cudaErrorInvalidResourceHandle);
  auto const ended = stream->capture;
  if (!ended) return returned(cudaErrorIllegalState);
  if (ended->origin != stream) return returned(cudaErrorStreamCaptureUnmatched);
  auto const seen = reached(ended->nodes, stream->frontier);
  bool const joined = std::find(seen.begin(), seen.end(), false) == seen.end();
  for (auto* other : live_streams())
    if (other->capture == ended) other->capture.reset(), other->frontier.clear();
  if (ended->invalid) return returned(cudaErrorStreamCaptureInvalidated);
  if (!joined) return returned(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(ended->nodes)};
  ended->invalid = true;  // for events that still remember it
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  DTM_STAND_IN_CUDA();
  auto* const stream = stream_of(handle);
  if (!stream) return returned(cudaErrorInvalidResourceHandle);
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     cudaGraphNode_t const** nodes, cudaGraphEdgeData const** edges,
                                     size_t* count) {
  if (edges) *edges = nullptr;
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     cudaGraphNode_t const** nodes, size_t* count) {
#endif
  DTM_STAND_IN_CUDA();
  auto* const stream = stream_of(handle);
  if (!stream) return returned(cudaErrorInvalidResourceHandle);
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  if (id && stream->capture) *id = stream->capture->id;
  if (graph) *graph = nullptr;  // nodes cannot be inspected or added by hand
  if (nodes) *nodes = nullptr;
  if (count) *count = 0;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  DTM_STAND_IN_CUDA();
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  DTM_STAND_IN_CUDA();
  if (!graph) return returned(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->nodes, {}};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  DTM_STAND_IN_CUDA();
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  DTM_STAND_IN_CUDA();
  if (!executable) return returned(cudaErrorInvalidValue);
  auto* const stream = stream_of(handle);
  if (!stream) return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture) return returned(refuse_captured(*stream));  // graphs in graphs: left out
  auto const begin = [executable]() -> poll {
    auto run = std::make_shared<launch>();
    run->nodes = executable->nodes;
    run->left = run->nodes.size();
    run->done.resize(run->left);
    run->before = executable->last;
    for (auto& node : run->nodes) run->runs.push_back(node.begin());
    return [run] { return run->advance(); };
  };
  return returned(submit(handle, "graph", begin, &executable->last));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  DTM_STAND_IN_CUDA();
  if (nodes) return returned(cudaErrorNotSupported);
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  DTM_STAND_IN_CUDA();
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  DTM_STAND_IN_CUDA();
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
