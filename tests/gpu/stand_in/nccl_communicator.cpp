// Life of a communicator: unique ids, joining, errors, leaving, aborting.

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "calls.hpp"
#include "nccl.hpp"
#include "nccl_calls.hpp"

namespace stand_in::nccl {
namespace {

constexpr char mark[] = "dtm stand-in";  // of a unique id that ncclGetUniqueId has filled

struct applicant {
  int rank, size, device, world;
  std::string host;
};

/// A communicator to be, at whoever made its id.
struct gathering {
  std::vector<applicant> applicants;
  std::string refusal;
  ncclResult_t code = ncclSuccess;
};

struct state {
  std::uint32_t ids_made = 0;
  std::map<mail::key, gathering> gatherings;
  std::vector<ncclComm_t> live;
  std::string last_error;
};
state& the() {
  static auto* const only = new state;
  return *only;
}

void judge(gathering& g) {
  auto const size = std::size_t(g.applicants.front().size);
  auto const refuse = [&](ncclResult_t code, std::string const& why) {
    if (g.code == ncclSuccess) g.code = code, g.refusal = why;
  };
  for (auto const& a : g.applicants)
    if (std::size_t(a.size) != size)
      refuse(ncclInvalidArgument, "rank " + std::to_string(a.rank) + " expects " +
                                      std::to_string(a.size) + " ranks, others " +
                                      std::to_string(size));
  if (g.applicants.size() < size) return;
  std::sort(g.applicants.begin(), g.applicants.end(),
            [](auto const& a, auto const& b) { return a.rank < b.rank; });
  for (auto const& a : g.applicants) {
    for (auto const& b : g.applicants) {
      if (&a == &b || a.rank > b.rank) continue;
      if (a.rank == b.rank)
        refuse(ncclInvalidArgument, "rank " + std::to_string(a.rank) + " has come twice");
      if (a.host == b.host && a.device == b.device)
        refuse(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(a.rank) +
                                     " and rank " + std::to_string(b.rank) +
                                     " both on CUDA device " + std::to_string(a.device) + " of " +
                                     a.host);
    }
  }
}

void answer(mail::key id, gathering& g) {
  bool const complete = g.applicants.size() == std::size_t(g.applicants.front().size);
  if (g.code == ncclSuccess && !complete) return;
  std::vector<std::int32_t> table(g.applicants.size());
  for (auto const& a : g.applicants)
    if (g.code == ncclSuccess) table[std::size_t(a.rank)] = a.world;
  for (auto const& a : g.applicants) {
    mail::header head{id, g.code == ncclSuccess ? mail::type::table : mail::type::refuse, 0};
    head.kind = g.code;
    if (g.code == ncclSuccess)
      mail::post(a.world, head, std::as_bytes(std::span(table)));
    else
      mail::post(a.world, head, g.refusal);
  }
  if (g.code == ncclSuccess) return void(the().gatherings.erase(id));
  g.applicants.clear();  // those who still come hear the same
}

void join(communicator& comm) {
  auto& tables = mail::box(comm.id, mail::type::table, 0);
  auto& refusals = mail::box(comm.id, mail::type::refuse, 0);
  if (!tables.empty()) {
    auto const& content = tables.front().content;
    std::vector<std::int32_t> table(content.size() / sizeof(std::int32_t));
    std::memcpy(table.data(), content.data(), content.size());
    comm.world.assign(table.begin(), table.end());
    comm.joined = true;
    comm.status = ncclSuccess;
  } else if (!refusals.empty()) {
    comm.fail(ncclResult_t(refusals.front().head.kind), refusals.front().text(), false);
  }
}

void leave(communicator& comm) {
  if (comm.running > 0) return;
  if (!comm.said_goodbye)
    for (int peer = 0; peer < comm.size; ++peer)
      if (peer != comm.rank)
        mail::post(comm.world[std::size_t(peer)],
                   mail::header{comm.id, mail::type::goodbye, comm.rank}, std::string());
  comm.said_goodbye = true;
  if (mail::senders(comm.id, mail::type::goodbye).size() + 1 == std::size_t(comm.size)) {
    comm.leaving = false;
    comm.left = true;
    comm.status = ncclSuccess;
  }
}

void remove(ncclComm_t comm) {
  mail::forget(comm->state->id);
  std::erase(the().live, comm);
  delete comm;
}

ncclResult_t make(ncclComm_t* handle, int size, ncclUniqueId id, int rank, bool blocking) {
  *handle = nullptr;
  if (size < 1 || rank < 0 || rank >= size)
    return refused(ncclInvalidArgument,
                   "rank " + std::to_string(rank) + " of " + std::to_string(size) + " ranks");
  if (std::memcmp(id.internal, mark, sizeof mark) != 0)
    return refused(ncclInvalidArgument, "the unique id does not come from ncclGetUniqueId");
  if (!mail::is_running()) return refused(ncclSystemError, "MPI does not run");
  auto comm = std::make_shared<communicator>();
  std::memcpy(&comm->id, id.internal + sizeof mark, sizeof comm->id);
  comm->rank = rank;
  comm->size = size;
  comm->device = current_device();
  comm->blocking = blocking;
  comm->sent.resize(std::size_t(size));
  comm->received.resize(std::size_t(size));
  mail::header head{comm->id, mail::type::hello, mail::world_rank()};
  head.root = rank;
  head.count = size;
  head.kind = comm->device;
  mail::post(int(comm->id >> 32), head, mail::host());
  the().live.push_back(new ncclComm{comm});
  *handle = the().live.back();
  if (!blocking) return ncclInProgress;
  if (defer_to_group(comm)) return ncclSuccess;
  return await(*comm, "ncclCommInitRank");
}

}  // namespace

ncclResult_t await(communicator& comm, char const* who) {
  wait_until([&] { return attend(comm), comm.status != ncclInProgress; }, nullptr, who);
  return broken_device() != cudaSuccess ? ncclUnhandledCudaError : comm.status;
}

void remember_error(std::string const& sentence) {
  the().last_error = sentence;
}

ncclResult_t refused(ncclResult_t code, std::string const& sentence) {
  remember_error(sentence);
  return code;
}

std::shared_ptr<communicator> find(ncclComm_t comm) {
  auto const found = std::find(the().live.begin(), the().live.end(), comm);
  return found == the().live.end() ? nullptr : comm->state;
}

void attend(communicator& comm) {
  if (!comm.joined && comm.status == ncclInProgress) join(comm);
  for (int from : mail::senders(comm.id, mail::type::notice)) {
    auto& notices = mail::box(comm.id, mail::type::notice, from);
    comm.fail(ncclRemoteError,
              "rank " + std::to_string(from) + " reports: " + notices.front().text(), false);
    notices.clear();
  }
  if (comm.leaving && comm.status == ncclInProgress) leave(comm);
}

void attend_requests() {
  for (std::uint32_t serial = 1; serial <= the().ids_made; ++serial) {
    mail::key const id = mail::key(mail::world_rank()) << 32 | serial;
    for (int from : mail::senders(id, mail::type::hello)) {
      auto& letters = mail::box(id, mail::type::hello, from);
      for (auto const& letter : letters)
        the().gatherings[id].applicants.push_back(
            {letter.head.root, int(letter.head.count), letter.head.kind, from, letter.text()});
      letters.clear();
      judge(the().gatherings[id]);
      answer(id, the().gatherings[id]);
    }
  }
}

}  // namespace stand_in::nccl

using namespace stand_in;
using namespace stand_in::nccl;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

char const* ncclGetLastError(ncclComm_t handle) {
  static std::string kept;
  auto const comm = find(handle);
  kept = comm && !comm->error.empty() ? comm->error : the().last_error;
  return kept.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  if (!mail::is_running()) return refused(ncclSystemError, "MPI does not run");
  *id = {};
  std::memcpy(id->internal, mark, sizeof mark);
  mail::key const made = mail::key(mail::world_rank()) << 32 | ++the().ids_made;
  std::memcpy(id->internal + sizeof mark, &made, sizeof made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  return make(comm, size, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  ncclConfig_t const expected = NCCL_CONFIG_INITIALIZER;
  if (config && (config->magic != expected.magic || config->size != expected.size))
    return refused(ncclInvalidArgument, "the configuration was not initialised");
  return make(comm, size, id, rank, !config || config->blocking != 0);
}

ncclResult_t ncclCommCount(ncclComm_t const handle, int* size) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  *size = comm->size;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t const handle, int* rank) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t const handle, int* device) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* status) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  if (comm->leaving) turn(nullptr);
  mail::progress();
  attend_requests();
  attend(*comm);
  if (comm->later && comm->polls_before_later-- == 0) std::exchange(comm->later, nullptr)();
  *status = comm->status;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  if (comm->status != ncclSuccess) return not_ready(*comm);
  if (comm->left || comm->leaving)
    return refused(ncclInvalidUsage, "ncclCommFinalize was called before");
  comm->leaving = true;
  comm->status = ncclInProgress;
  attend(*comm);
  return comm->blocking ? await(*comm, __func__) : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  wait_until([&] { return comm->running == 0; }, nullptr, __func__);  // also where it has failed
  comm->aborted = true;
  remove(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle) {
  DTM_STAND_IN_ENTER(ncclResult_t);
  auto const comm = find(handle);
  if (!comm) return refused(ncclInvalidArgument, "no such communicator");
  comm->aborted = true;
  comm->later = nullptr;
  remove(handle);
  return ncclSuccess;
}

}  // extern "C"
