#pragma once
// Streams as queues, and who empties them. An operation is a function that makes progress and says
// whether it is complete, so that one that waits for a peer does not hold up other streams.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stand_in {

struct completion {
  bool done = false;
  double when = 0;  // seconds
};

using poll = std::function<bool()>;
/// Makes the operation anew each time it takes its place in a queue: once, or at every launch of
/// the graph that it was captured in.
using start = std::function<poll()>;

struct operation {
  std::string name;
  poll run;
  std::shared_ptr<completion> end;
};

struct capture;

}  // namespace stand_in

struct CUstream_st {
  std::deque<stand_in::operation> queue;
  std::shared_ptr<stand_in::completion> tail;  // of the last operation that was enqueued
  unsigned flags = 0;
  int priority = 0;
  int device = 0;
  unsigned long long id = 0;
  bool destroyed = false;  // what is queued still runs

  std::shared_ptr<stand_in::capture> capture;
  std::vector<int> frontier;  // nodes that the next captured one comes after

  bool waits_for_default() const { return !(flags & cudaStreamNonBlocking); }
};

namespace stand_in {

/// The stream behind a handle, 0 and cudaStreamLegacy included; nullptr: no such stream.
CUstream_st* stream_of(cudaStream_t handle);
CUstream_st* default_stream();
CUstream_st* create_stream(unsigned flags, int priority);
void destroy_stream(CUstream_st* stream);
std::vector<CUstream_st*> live_streams();

/// Puts an operation into the queue, or into the graph that is captured. `end` tells when it has
/// run; it stays empty for a captured one.
cudaError_t submit(cudaStream_t handle, std::string name, start begin,
                   std::shared_ptr<completion>* end = nullptr);

/// For operations that run once and at once.
cudaError_t submit_once(cudaStream_t handle, std::string name, std::function<void()> work,
                        std::shared_ptr<completion>* end = nullptr);

/// An operation of its own right, past the capture: what the stand-in itself must order.
void append(CUstream_st& stream, std::string name, poll run, std::shared_ptr<completion> end);

/// Runs operations until `ready` says so. The process ends with a sentence when that takes longer
/// than the patience, since a real call would hang.
void wait_until(std::function<bool()> const& ready, CUstream_st* preferred, char const* who);

/// The same for a stream, an event, everything.
void drain(CUstream_st& stream, char const* who);
void drain_all(char const* who);

/// A little progress, as a query gives it.
bool turn(CUstream_st* preferred);

/// The host has called a stand-in: its streams get no turn of their own for a while.
void host_is_alive();
/// The host polls MPI. Where it has done so for a while and asked for nothing else, it waits for a
/// peer that may wait for one of this process's streams, which on a GPU would move by themselves.
void host_polls();

bool an_operation_runs();
double now();

/// A drawn number below `limit`; 0 while no seed is set.
std::size_t drawn(std::size_t limit);

}  // namespace stand_in
