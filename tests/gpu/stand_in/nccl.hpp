#pragma once
// Communicators of the stand-in for NCCL, and the operations that they run. An operation sends what
// the others need when its turn comes, then waits for what they send; every message says which
// operation it belongs to, and one that does not fit is an error of the communicator.

#include <nccl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mail.hpp"
#include "queue.hpp"

namespace stand_in::nccl {

enum class kind : std::int32_t { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

/// One call, as it was made.
struct item {
  kind what;
  void const* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;  // of the call
  ncclDataType_t datatype = ncclInt8;
  ncclRedOp_t reduction = ncclSum;
  int root = 0;  // of a broadcast; the peer of a send or receive

  bool between_two() const { return what == kind::send || what == kind::receive; }
};

std::size_t bytes_of(ncclDataType_t datatype);
bool is_supported(ncclDataType_t datatype);
char const* name_of(ncclDataType_t datatype);

/// "AllReduce(count 4, float32, sum)"
std::string describe(item const& i);

/// accumulated[i] = accumulated[i] op next[i]; sums of bfloat16 are made in float, see finish().
class accumulator {
 public:
  accumulator(ncclDataType_t datatype, ncclRedOp_t reduction, std::int64_t count);
  void add(std::byte const* next);
  /// Rounds, where the accumulator is wider than the type.
  void finish(std::byte* out) const;

 private:
  ncclDataType_t datatype_;
  ncclRedOp_t reduction_;
  std::int64_t count_;
  bool empty_ = true;
  std::vector<std::byte> wide_;
};

struct communicator {
  mail::key id = 0;
  int rank = 0, size = 1, device = 0;
  bool blocking = true;
  std::vector<int> world;  // world rank of each rank

  ncclResult_t status = ncclInProgress;  // what ncclCommGetAsyncError says
  std::string error;                     // what ncclGetLastError says
  bool joined = false, aborted = false;
  bool leaving = false, said_goodbye = false, left = false;

  std::int64_t issued = 0, turn = 0;  // operations run in the order of their issue
  int running = 0;                    // queued or running
  std::int64_t collectives = 0;
  std::vector<std::int64_t> sent, received;  // per peer

  /// What a call left to be done: without `blocking` it is done while the program polls.
  std::function<ncclResult_t()> later;
  int polls_before_later = 0;

  void fail(ncclResult_t code, std::string const& sentence, bool tell);
};

/// All items of a group on one communicator: they begin together and complete together.
class group_run {
 public:
  group_run(std::shared_ptr<communicator> comm, std::vector<item> items);
  group_run(group_run const&) = delete;
  group_run& operator=(group_run const&) = delete;
  ~group_run();

  /// One more look; true when all items are complete, or the communicator was aborted.
  bool advance();

 private:
  struct progress {
    std::vector<std::vector<std::byte>> from;  // of each rank
    std::vector<bool> has;
    bool acknowledged = false;
    std::int64_t number = 0;
  };

  void begin();
  void begin_item(item const& i, progress& p);
  bool take_from(int peer);
  void take_acknowledgements();
  bool complete(item const& i, progress const& p) const;
  void finish(item const& i, progress& p);
  void mismatch(int peer, mail::header const& theirs, item const& mine, std::int64_t number);
  bool expects(item const& i, int peer) const;

  std::shared_ptr<communicator> comm_;
  std::vector<item> items_;
  std::vector<progress> progress_;
  std::int64_t ticket_;
  bool begun_ = false, over_ = false;
};

/// Looks after a communicator's messages that belong to no operation: joining, notices, goodbyes.
void attend(communicator& comm);
/// ... and the requests to join those that this process has made the id of.
void attend_requests();

/// The sentence of the last error, for ncclGetLastError(nullptr).
void remember_error(std::string const& sentence);

}  // namespace stand_in::nccl

struct ncclComm {
  std::shared_ptr<stand_in::nccl::communicator> state;
};
