// Streams and events of the CUDA runtime.

#include <algorithm>
#include <vector>

#include "calls.hpp"
#include "capture.hpp"
#include "event.hpp"
#include "memory.hpp"
#include "queue.hpp"

using namespace stand_in;

namespace stand_in {
namespace {

std::vector<cudaEvent_t>& events() {
  static auto* const all = new std::vector<cudaEvent_t>;
  return *all;
}

}  // namespace

bool is_event(cudaEvent_t event) {
  return std::find(events().begin(), events().end(), event) != events().end();
}

}  // namespace stand_in

#define DTM_STAND_IN_STREAM(stream, handle) \
  auto* const stream = stream_of(handle);   \
  if (!stream) return returned(cudaErrorInvalidResourceHandle)

#define DTM_STAND_IN_EVENT(event) \
  if (!is_event(event)) return returned(cudaErrorInvalidResourceHandle)

extern "C" {

// ---- streams -------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  DTM_STAND_IN_CUDA();
  *stream = create_stream(flags, priority);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  DTM_STAND_IN_CUDA();
  *stream = create_stream(flags, 0);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  DTM_STAND_IN_CUDA();
  *stream = create_stream(cudaStreamDefault, 0);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  if (stream == default_stream()) return returned(cudaErrorInvalidResourceHandle);
  if (stream->capture) stream->capture->invalid = true;
  destroy_stream(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  if (auto const refused = refuse_captured(*stream)) return returned(refused);
  if (auto const refused = refuse_implicit(*stream)) return returned(refused);
  drain(*stream, __func__);
  trim_pools();
  return returned(broken_device());
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  if (auto const refused = refuse_captured(*stream)) return returned(refused);
  if (auto const refused = refuse_implicit(*stream)) return returned(refused);
  if (!stream->queue.empty()) turn(stream);
  if (broken_device() != cudaSuccess) return returned(broken_device());
  return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  DTM_STAND_IN_EVENT(event);
  if (drop_this_wait()) return cudaSuccess;
  if (event->capture) {  // joins the capture, or orders within it
    if (event->capture->invalid) return returned(cudaErrorStreamCaptureInvalidated);
    if (stream->capture && stream->capture != event->capture) {
      stream->capture->invalid = event->capture->invalid = true;
      return returned(cudaErrorStreamCaptureMerge);
    }
    if (!stream->capture) stream->frontier.clear();
    stream->capture = event->capture;
    for (int node : event->frontier)
      if (std::find(stream->frontier.begin(), stream->frontier.end(), node) ==
          stream->frontier.end())
        stream->frontier.push_back(node);
    return cudaSuccess;
  }
  if (!event->record) return cudaSuccess;  // never recorded: nothing to wait for
  if (stream->capture) {                   // work outside of the capture
    stream->capture->invalid = true;
    return returned(cudaErrorStreamCaptureIsolation);
  }
  return returned(submit(handle, "wait for an event", [record = event->record]() -> poll {
    return [record] { return record->done; };
  }));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* argument) {
  DTM_STAND_IN_CUDA();
  return returned(submit_once(handle, "host function", [=] { function(argument); }));
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  *flags = stream->flags;
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  *priority = stream->priority;
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  *id = stream->id;
  return cudaSuccess;
}

#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  *device = stream->device;
  return cudaSuccess;
}
#endif

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  DTM_STAND_IN_CUDA();
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  DTM_STAND_IN_CUDA();
  if (auto const refused = refuse_while_capturing()) return returned(refused);
  drain_all(__func__);
  trim_pools();
  return returned(broken_device());
}

// ---- events --------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  DTM_STAND_IN_CUDA();
  *event = new CUevent_st;
  (*event)->flags = flags;
  events().push_back(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_EVENT(event);
  std::erase(events(), event);
  delete event;  // waits that are queued hold what they wait for
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_STREAM(stream, handle);
  DTM_STAND_IN_EVENT(event);
  if (drop_this_record()) return cudaSuccess;
  if (stream->capture) {
    if (stream->capture->invalid) return returned(cudaErrorStreamCaptureInvalidated);
    event->record.reset();
    event->capture = stream->capture;
    event->frontier = stream->frontier;
    return cudaSuccess;
  }
  event->capture.reset();
  return returned(submit_once(
      handle, "record of an event", [] {}, &event->record));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordDefault) return returned(cudaErrorNotSupported);
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_EVENT(event);
  if (event->capture) {
    event->capture->invalid = true;
    return returned(cudaErrorCapturedEvent);
  }
  DTM_STAND_IN_UNSAFE();
  if (!event->record || event->record->done) return cudaSuccess;
  turn(nullptr);
  if (broken_device() != cudaSuccess) return returned(broken_device());
  return event->record->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_EVENT(event);
  if (event->capture) {
    event->capture->invalid = true;
    return returned(cudaErrorCapturedEvent);
  }
  DTM_STAND_IN_UNSAFE();
  if (auto const record = event->record)
    wait_until([&] { return record->done; }, nullptr, __func__);
  trim_pools();
  return returned(broken_device());
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t last) {
  DTM_STAND_IN_CUDA();
  DTM_STAND_IN_EVENT(first);
  DTM_STAND_IN_EVENT(last);
  if (((first->flags | last->flags) & cudaEventDisableTiming) || !first->record || !last->record)
    return returned(cudaErrorInvalidResourceHandle);
  if (!first->record->done || !last->record->done) return cudaErrorNotReady;
  *milliseconds = float((last->record->when - first->record->when) * 1e3);
  return cudaSuccess;
}

}  // extern "C"
