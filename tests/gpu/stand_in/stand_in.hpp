#pragma once
// Stand-ins for the C functions of the CUDA runtime, NCCL and cuBLAS, so that the library's host
// code for GPUs runs on a machine that has none. Tests link the target dtm_gpu_stand_in in place
// of the real libraries and see the real headers; this header is what they may ask beside those.
//
// A stream is a queue that nobody empties until somebody waits or asks: an operation runs as late
// as possible, the host cannot read device memory between operations, and memory is filled with
// NaNs when it is new and when it is freed. So a missing wait, a read too early and a buffer freed
// too soon show as a wrong result or a sentence, each time.
//
// Environment, read once:
//   DTM_STAND_IN_SEED      0 (default): the stream waited for runs ahead, the others only where it
//                          is blocked. Other numbers: a drawn order of streams and of graph nodes.
//   DTM_STAND_IN_DEVICES   devices of this process, all of them of this host (default 1)
//   DTM_STAND_IN_MEMORY    MiB of device memory, all devices together (default 16384)
//   DTM_STAND_IN_PATIENCE  seconds after which a blocking call ends the process with a sentence
//                          (default 60): a real one would hang

#include <cuda_runtime_api.h>

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace stand_in {

// ---- work of the tests ---------------------------------------------------------------------------

/// Enqueues host code as an operation of the stream: called when the stream reaches it, again until
/// it returns true. It may touch device memory and must not call CUDA. A captured one is copied for
/// each launch of its graph. Errors are those of a kernel launch.
cudaError_t enqueue(cudaStream_t stream, std::function<bool()> operation,
                    std::string name = "kernel");

/// What a launch with a bad configuration leaves for cudaGetLastError.
void set_last_error(cudaError_t error);

/// One turn for all streams and messages, as if time had passed. True when something moved.
bool progress();

/// Operations that have not finished: of all streams, of one.
std::size_t queued();
std::size_t queued(cudaStream_t stream);

// ---- memory --------------------------------------------------------------------------------------

bool is_device(void const* address);
bool is_pinned(void const* address, std::size_t bytes = 1);

/// Copies device memory as it is now, whatever is still queued. For assertions.
void peek(void* to, void const* device, std::size_t bytes);

/// Writes behind the end of an allocation are found here and when it is freed; both end the
/// process with a sentence.
void check_guards();

// ---- what happened -------------------------------------------------------------------------------

struct counts {
  std::int64_t driver_allocations = 0;  // cudaMalloc, and pools that grew
  std::int64_t pool_allocations = 0;    // cudaMallocAsync and the like, also from a pool's stock
  std::int64_t host_allocations = 0;    // cudaHostAlloc, cudaMallocHost, cudaHostRegister
  std::int64_t live_blocks = 0;         // device allocations that have not been freed
  std::int64_t live_bytes = 0;
  std::int64_t enqueued = 0;    // operations that entered a queue
  std::int64_t operations = 0;  // operations that have run
};
counts count();

/// Calls of a function since reset(), by its documented name: calls("cudaMalloc").
std::int64_t calls(std::string const& function);

struct gemm {
  cublasOperation_t left, right;
  std::int64_t m, n, k, batches;
  cudaDataType a, b, c;
  cublasComputeType_t compute;
  cublasGemmAlgo_t algorithm;
  cublasMath_t math;   // of the handle
  bool tf32;           // inputs are rounded to 10 bits: by the compute type or the handle's mode
  bool own_workspace;  // cublasSetWorkspace holds for this call; cublasSetStream ends that
  cudaStream_t stream;
};
/// Products since reset(), in the order of the calls.
std::vector<gemm> const& gemms();

// ---- planted faults ------------------------------------------------------------------------------

/// The n-th call from now of a function (1: the next) returns `code` and does nothing else.
void fail_call(std::string const& function, int nth, int code);

/// The next `count` calls of cudaStreamWaitEvent, of cudaEventRecord succeed and do nothing.
void drop_waits(int count);
void drop_records(int count);

/// An operation that fails when the stream reaches it, as a kernel with a bad address does: from
/// then on every call returns `error`.
cudaError_t enqueue_fault(cudaStream_t stream, cudaError_t error = cudaErrorIllegalAddress);

/// In the next `count` NCCL messages of this process that carry data, one bit is wrong.
void corrupt_messages(int count);

/// Seconds that a blocking call may take.
void set_patience(double seconds);

/// As DTM_STAND_IN_SEED.
void set_seed(std::uint64_t seed);

/// Forgets planted faults, errors that stick, counts and logs, and drops what is queued; memory and
/// streams stay. A communicator that had something queued can only be aborted then.
void reset();

}  // namespace stand_in
