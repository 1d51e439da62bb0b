// What a group does when its turn has come.

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "arena.hpp"
#include "nccl.hpp"

namespace stand_in::nccl {
namespace {

std::vector<std::byte> copy_of(void const* from, std::size_t bytes) {
  auto const* const at = static_cast<std::byte const*>(from);
  return bytes == 0 ? std::vector<std::byte>() : std::vector<std::byte>(at, at + bytes);
}

std::size_t size_of(item const& i) {
  return std::size_t(i.count) * bytes_of(i.datatype);
}

bool reduces(kind what) {
  return what == kind::all_reduce || what == kind::reduce_scatter;
}

item item_of(mail::header const& head) {
  item i{kind(head.kind)};
  i.count = head.count;
  i.datatype = ncclDataType_t(head.datatype);
  i.reduction = ncclRedOp_t(head.reduction);
  i.root = head.root;
  return i;
}

/// What a letter must look like to belong to an item.
bool fits(mail::header const& theirs, item const& mine, std::int64_t number) {
  kind const wanted = mine.what == kind::receive ? kind::send : mine.what;
  return kind(theirs.kind) == wanted && theirs.count == mine.count &&
         theirs.datatype == mine.datatype && theirs.number == number &&
         (!reduces(wanted) || theirs.reduction == mine.reduction) &&
         (wanted != kind::broadcast || theirs.root == mine.root);
}

}  // namespace

void communicator::fail(ncclResult_t code, std::string const& sentence, bool tell) {
  if (status != ncclSuccess && status != ncclInProgress) return;  // the first error stays
  status = code;
  error = sentence;
  remember_error(sentence);
  if (!tell) return;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    mail::header head{id, mail::type::notice, rank};
    mail::post(world[std::size_t(peer)], head, sentence);
  }
}

group_run::group_run(std::shared_ptr<communicator> comm, std::vector<item> items)
    : comm_(std::move(comm)), items_(std::move(items)), ticket_(comm_->issued++) {
  // Both sides order a group the same way: collectives first, then what is between two.
  std::stable_partition(items_.begin(), items_.end(),
                        [](item const& i) { return !i.between_two(); });
  progress_.resize(items_.size());
  ++comm_->running;
}

group_run::~group_run() {
  if (!over_) --comm_->running;
}

bool group_run::expects(item const& i, int peer) const {
  if (peer == comm_->rank) return false;
  return i.between_two() ? i.what == kind::receive && i.root == peer : true;
}

void group_run::begin_item(item const& i, progress& p) {
  auto& comm = *comm_;
  p.from.resize(std::size_t(comm.size));
  p.has.resize(std::size_t(comm.size));
  p.number = i.what == kind::send      ? comm.sent[std::size_t(i.root)]++
             : i.what == kind::receive ? comm.received[std::size_t(i.root)]++
                                       : comm.collectives++;
  mail::header const head{comm.id,    mail::type::data, comm.rank, std::int32_t(i.what),
                          i.datatype, i.reduction,      i.root,    i.count,
                          p.number};
  std::size_t const bytes = size_of(i);
  for (int peer = 0; peer < comm.size; ++peer) {
    auto const* in = static_cast<std::byte const*>(i.in);
    std::size_t length = bytes;
    if (i.what == kind::receive || (i.what == kind::send && peer != i.root)) continue;
    if (i.what == kind::reduce_scatter) in += std::size_t(peer) * bytes;
    if (i.what == kind::broadcast && comm.rank != i.root) length = 0;
    auto content = copy_of(in, length);
    if (peer != comm.rank) {
      mail::post(comm.world[std::size_t(peer)], head, std::span<std::byte const>(content));
    } else {
      p.from[std::size_t(peer)] = std::move(content);
      p.has[std::size_t(peer)] = true;
    }
  }
}

void group_run::begin() {
  begun_ = true;
  for (std::size_t i = 0; i < items_.size(); ++i) begin_item(items_[i], progress_[i]);
  // What a rank sends to itself in a group; that the sides fit was seen when the group was made.
  std::size_t next = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].what != kind::receive || items_[i].root != comm_->rank) continue;
    while (items_[next].what != kind::send || items_[next].root != comm_->rank) ++next;
    auto const own = std::size_t(comm_->rank);
    progress_[i].from[own] = progress_[next].from[own];
    progress_[i].has[own] = progress_[next].acknowledged = true;
    ++next;
  }
}

void group_run::mismatch(int peer, mail::header const& theirs, item const& mine,
                         std::int64_t number) {
  auto const side = [&](int rank, item const& i, std::int64_t count) {
    return "rank " + std::to_string(rank) + " runs " + describe(i) + " as number " +
           std::to_string(count) + (i.between_two() ? " between the two" : " of its collectives");
  };
  comm_->fail(ncclInvalidUsage,
              "communicator " + std::to_string(comm_->id >> 32) + "." +
                  std::to_string(comm_->id & 0xffffffffu) +
                  ": the ranks run different operations: " + side(comm_->rank, mine, number) +
                  ", " + side(peer, item_of(theirs), theirs.number),
              true);
}

/// Gives the letters of a peer, in their order, to the items that wait for them, in theirs.
bool group_run::take_from(int peer) {
  auto& letters = mail::box(comm_->id, mail::type::data, peer);
  while (!letters.empty()) {
    std::size_t i = 0;
    while (i < items_.size() && (!expects(items_[i], peer) || progress_[i].has[std::size_t(peer)]))
      ++i;
    if (i == items_.size()) return true;  // belongs to a later operation
    auto& letter = letters.front();
    auto& p = progress_[i];
    if (!fits(letter.head, items_[i], p.number)) {
      mismatch(peer, letter.head, items_[i], p.number);
      return false;
    }
    p.from[std::size_t(peer)] = std::move(letter.content);
    p.has[std::size_t(peer)] = true;
    if (items_[i].what == kind::receive) {
      mail::header head{comm_->id, mail::type::ack, comm_->rank};
      head.number = p.number;
      mail::post(comm_->world[std::size_t(peer)], head, std::string());
    }
    letters.pop_front();
  }
  return true;
}

/// A send waits for its receive, small ones too: nothing promises that they are buffered.
void group_run::take_acknowledgements() {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].what != kind::send || progress_[i].acknowledged) continue;
    auto& letters = mail::box(comm_->id, mail::type::ack, items_[i].root);
    auto const mine = std::find_if(letters.begin(), letters.end(), [&](mail::letter const& l) {
      return l.head.number == progress_[i].number;
    });
    if (mine == letters.end()) continue;
    letters.erase(mine);
    progress_[i].acknowledged = true;
  }
}

bool group_run::complete(item const& i, progress const& p) const {
  if (i.what == kind::send) return p.acknowledged;
  if (i.what == kind::receive) return p.has[std::size_t(i.root)];
  return std::find(p.has.begin(), p.has.end(), false) == p.has.end();
}

/// Sums are made in rank order, on every rank alike.
void group_run::finish(item const& i, progress& p) {
  auto* const out = static_cast<std::byte*>(i.out);
  std::size_t const bytes = size_of(i);
  if (i.what == kind::send || bytes == 0) return;
  if (reduces(i.what)) {
    accumulator sum(i.datatype, i.reduction, i.count);
    for (auto const& content : p.from) sum.add(content.data());
    sum.finish(out);
  } else if (i.what == kind::all_gather) {
    for (std::size_t rank = 0; rank < p.from.size(); ++rank)
      std::memcpy(out + rank * bytes, p.from[rank].data(), bytes);
  } else {
    std::memcpy(out, p.from[std::size_t(i.root)].data(), bytes);
  }
}

bool group_run::advance() {
  if (over_) return true;
  auto& comm = *comm_;
  attend(comm);
  if (comm.aborted) {  // whatever an operation leaves that was cut short, it is not the result
    for (auto const& i : items_) {
      std::size_t const pieces = i.what == kind::all_gather ? std::size_t(comm.size) : 1;
      if (i.out && arena::the().contains(i.out)) std::memset(i.out, 0xff, pieces * size_of(i));
    }
  } else {
    bool const failed = comm.status != ncclSuccess && comm.status != ncclInProgress;
    if (failed || ticket_ != comm.turn) return false;
    if (!begun_) begin();
    for (int peer = 0; peer < comm.size; ++peer)
      if (!take_from(peer)) return false;
    take_acknowledgements();
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!complete(items_[i], progress_[i])) return false;
    for (std::size_t i = 0; i < items_.size(); ++i) finish(items_[i], progress_[i]);
    ++comm.turn;
  }
  over_ = true;
  --comm.running;
  return true;
}

}  // namespace stand_in::nccl
