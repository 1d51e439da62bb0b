// Groups and the operations of the stand-in for NCCL.

#include <algorithm>
#include <map>
#include <utility>

#include "calls.hpp"
#include "nccl_calls.hpp"
#include "stand_in.hpp"

#include "arena.hpp"
#include "memory.hpp"

namespace stand_in::nccl {
namespace {

struct call {
  std::shared_ptr<communicator> comm;
  item what;
  cudaStream_t stream;
};

struct state {
  int depth = 0;
  std::vector<call> calls;
  std::vector<std::shared_ptr<communicator>> joining;
  ncclResult_t failed = ncclSuccess;
};
state group;

bool is_usable(void const* buffer, std::size_t bytes) {
  return bytes == 0 || arena::the().holds(buffer, bytes) || is_pinned_range(buffer, bytes);
}

bool overlap(void const* a, std::size_t a_bytes, void const* b, std::size_t b_bytes) {
  auto const *p = static_cast<char const*>(a), *q = static_cast<char const*>(b);
  return a_bytes > 0 && b_bytes > 0 && p < q + b_bytes && q < p + a_bytes;
}

/// Bytes that an item reads and writes.
std::pair<std::size_t, std::size_t> extents(item const& i, communicator const& comm) {
  std::size_t const bytes = std::size_t(i.count) * bytes_of(i.datatype);
  std::size_t const all = bytes * std::size_t(comm.size);
  switch (i.what) {
    case kind::all_reduce:
      return {bytes, bytes};
    case kind::reduce_scatter:
      return {all, bytes};
    case kind::all_gather:
      return {bytes, all};
    case kind::broadcast:
      return {comm.rank == i.root ? bytes : 0, bytes};
    case kind::send:
      return {bytes, 0};
    default:
      return {0, bytes};
  }
}

/// The in-place forms that NCCL names; any other overlap is undefined.
bool in_place(item const& i, communicator const& comm) {
  auto const *in = static_cast<char const*>(i.in), *out = static_cast<char const*>(i.out);
  std::size_t const offset = std::size_t(comm.rank) * std::size_t(i.count) * bytes_of(i.datatype);
  if (i.what == kind::reduce_scatter) return out == in + offset;
  if (i.what == kind::all_gather) return in == out + offset;
  return in == out;
}

std::string check(item const& i, communicator const& comm) {
  auto const [read, written] = extents(i, comm);
  if (!is_supported(i.datatype)) return "a type that the stand-in does not have";
  if (i.reduction != ncclSum && i.reduction != ncclMax && i.reduction != ncclMin)
    return "a reduction that the stand-in does not have";
  if (i.root < 0 || i.root >= comm.size)
    return "rank " + std::to_string(i.root) + " of " + std::to_string(comm.size);
  if (!is_usable(i.in, read)) return "the send buffer is not device memory of that size";
  if (!is_usable(i.out, written)) return "the receive buffer is not device memory of that size";
  if (overlap(i.in, read, i.out, written) && !in_place(i, comm))
    return "the buffers overlap, and not as an in-place operation may";
  return {};
}

/// What only the whole group shows.
std::string check(std::vector<item> const& items, communicator const& comm) {
  std::int64_t to_self = 0;
  std::vector<item> sends, receives;
  for (auto const& i : items) {
    if (i.root == comm.rank && i.between_two()) {
      to_self += i.what == kind::send ? 1 : -1;
      (i.what == kind::send ? sends : receives).push_back(i);
    }
    for (auto const& j : items) {
      if (&i == &j || i.what != kind::receive) continue;
      auto const [read, written] = extents(j, comm);
      std::size_t const bytes = extents(i, comm).second;
      if (overlap(i.out, bytes, j.in, read) || overlap(i.out, bytes, j.out, written))
        return "in a group, " + describe(i) + " writes what " + describe(j) + " uses";
    }
  }
  if (to_self != 0) return "a rank sends to itself without receiving, or the reverse";
  for (std::size_t n = 0; n < sends.size(); ++n)
    if (sends[n].count != receives[n].count || sends[n].datatype != receives[n].datatype)
      return describe(sends[n]) + " to itself meets " + describe(receives[n]);
  return {};
}

using parts = std::vector<std::pair<std::shared_ptr<communicator>, std::vector<item>>>;

/// One operation of the stream, which advances all communicators of it side by side.
ncclResult_t enqueue_parts(cudaStream_t stream, parts const& all) {
  std::string name = "NCCL";
  for (auto const& [comm, items] : all)
    for (auto const& i : items) name += " " + describe(i);
  auto const begin = [all]() -> poll {
    std::vector<std::shared_ptr<group_run>> runs;
    for (auto const& [comm, items] : all) runs.push_back(std::make_shared<group_run>(comm, items));
    return [runs] {
      bool complete = true;
      for (auto const& run : runs) complete &= run->advance();
      return complete;
    };
  };
  auto const error = submit(stream, name, begin);
  if (error == cudaSuccess) return ncclSuccess;
  return refused(ncclUnhandledCudaError, cudaGetErrorString(error));
}

ncclResult_t launch(std::vector<call> const& calls) {
  std::vector<std::pair<cudaStream_t, parts>> streams;
  for (auto const& c : calls) {
    auto at = std::find_if(streams.begin(), streams.end(),
                           [&](auto const& s) { return s.first == c.stream; });
    if (at == streams.end()) at = streams.insert(at, {c.stream, {}});
    auto part = std::find_if(at->second.begin(), at->second.end(),
                             [&](auto const& p) { return p.first == c.comm; });
    if (part == at->second.end()) part = at->second.insert(part, {c.comm, {}});
    part->second.push_back(c.what);
  }
  for (auto const& [stream, all] : streams) {
    for (auto const& [comm, items] : all) {
      if (auto const wrong = check(items, *comm); !wrong.empty())
        return refused(ncclInvalidUsage, wrong);
      for (auto const& c : calls)
        if (c.comm == comm && c.stream != stream)
          return refused(ncclInvalidUsage, "two streams for one communicator in a group");
    }
  }
  for (auto const& [stream, all] : streams)
    if (auto const result = enqueue_parts(stream, all); result != ncclSuccess) return result;
  return ncclSuccess;
}

/// Without `blocking` the operations enter their stream only while the program polls, as they do
/// where NCCL's own thread launches them: a program that does not poll records its event too early.
ncclResult_t launch_later(std::vector<call> const& calls) {
  auto const once = [calls] {
    auto const result = launch(calls);
    for (auto const& c : calls) {
      c.comm->later = nullptr;
      if (c.comm->status != ncclInProgress) continue;
      c.comm->status = result;
      if (result != ncclSuccess) c.comm->error = ncclGetLastError(nullptr);
    }
    return result;
  };
  for (auto const& c : calls) {
    c.comm->status = ncclInProgress;
    c.comm->polls_before_later = 1;
    c.comm->later = once;
  }
  return ncclInProgress;
}

ncclResult_t end() {
  auto const ended = std::exchange(group, {});
  if (ended.failed != ncclSuccess) return ended.failed;
  for (auto const& comm : ended.joining)
    if (auto const result = await(*comm, "ncclGroupEnd"); result != ncclSuccess) return result;
  if (ended.calls.empty()) return ncclSuccess;
  bool const blocking = ended.calls.front().comm->blocking;
  for (auto const& c : ended.calls)
    if (c.comm->blocking != blocking)
      return refused(ncclInvalidArgument, "blocking and other communicators in one group");
  return blocking ? launch(ended.calls) : launch_later(ended.calls);
}

ncclResult_t issue(ncclComm_t handle, item const& what, cudaStream_t stream) {
  auto const comm = find(handle);
  ncclResult_t result = ncclSuccess;
  if (!comm)
    result = refused(ncclInvalidArgument, "no such communicator");
  else if (comm->status != ncclSuccess)
    result = not_ready(*comm);
  else if (comm->left)
    result = refused(ncclInvalidUsage, "the communicator was finalised");
  else if (auto const wrong = check(what, *comm); !wrong.empty())
    result = refused(ncclInvalidArgument, describe(what) + ": " + wrong);
  if (result != ncclSuccess) {
    if (group.depth > 0) group.failed = result;
    return result;
  }
  group.calls.push_back({comm, what, stream});
  return group.depth > 0 ? ncclSuccess : end();
}

}  // namespace

ncclResult_t not_ready(communicator const& comm) {
  if (comm.status != ncclInProgress) return refused(comm.status, comm.error);
  return refused(ncclInvalidArgument,
                 "the communicator is used before its last operation has returned ncclSuccess");
}

bool defer_to_group(std::shared_ptr<communicator> const& comm) {
  if (group.depth > 0) group.joining.push_back(comm);
  return group.depth > 0;
}

}  // namespace stand_in::nccl

using namespace stand_in::nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  DTM_STAND_IN_ENTER(ncclResult_t);
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  DTM_STAND_IN_ENTER(ncclResult_t);
  if (group.depth == 0) return refused(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  return --group.depth > 0 ? ncclSuccess : end();
}

ncclResult_t ncclAllReduce(void const* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return issue(comm, {kind::all_reduce, in, out, std::int64_t(count), type, reduction}, stream);
}

ncclResult_t ncclReduceScatter(void const* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return issue(comm, {kind::reduce_scatter, in, out, std::int64_t(count), type, reduction}, stream);
}

ncclResult_t ncclAllGather(void const* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return issue(comm, {kind::all_gather, in, out, std::int64_t(count), type}, stream);
}

ncclResult_t ncclBroadcast(void const* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return issue(comm, {kind::broadcast, in, out, std::int64_t(count), type, ncclSum, root}, stream);
}

ncclResult_t ncclSend(void const* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return issue(comm, {kind::send, in, nullptr, std::int64_t(count), type, ncclSum, peer}, stream);
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return issue(comm, {kind::receive, nullptr, out, std::int64_t(count), type, ncclSum, peer},
               stream);
}

}  // extern "C"
