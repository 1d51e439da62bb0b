#pragma once
// Stream capture and graphs: operations with what they come after.

#include "queue.hpp"

namespace stand_in {

struct node {
  std::string name;
  start begin;
  std::vector<int> after;
};

struct capture {
  unsigned long long id = 0;
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool invalid = false;
  std::vector<node> nodes;
};

/// Adds a node behind the stream's frontier.
cudaError_t record(CUstream_st& stream, std::string name, start begin);

/// A stream of a capture was asked for what only a running stream can give.
cudaError_t refuse_captured(CUstream_st& stream);

/// The default stream may not be used while a stream that heeds it is captured.
cudaError_t refuse_implicit(CUstream_st& stream);

/// Calls like cudaMalloc and cudaEventQuery: not while a stream of this thread is captured, unless
/// its mode or the thread's is relaxed.
cudaError_t refuse_unsafe();

/// cudaDeviceSynchronize and what it is part of: not in any mode.
cudaError_t refuse_while_capturing();

}  // namespace stand_in

#define DTM_STAND_IN_UNSAFE() \
  if (cudaError_t const refused = stand_in::refuse_unsafe()) return stand_in::returned(refused)
