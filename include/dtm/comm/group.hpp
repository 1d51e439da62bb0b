#pragma once
// The ranks that take part in an operation: one mesh axis, several, or all. Every operation is
// collective over the group, begins without waiting (from check level 2 on it first compares
// signatures) and is complete when `wait` has returned.
//
// Memory: `in` is copied when the operation begins, `out` is written when the wait succeeds, so a
// failure of a peer never leaves MPI with pointers into memory that the unwinding stack has freed.
// Operands may lie in a device's memory, which then does the copies.
// Counts are 64-bit and count elements. A group of one copies and does not call MPI.
//
// Sums are in the order of the ranks. Ranks that share memory read each other's operands instead
// (shared_group.hpp); then `out` is written while the operation is under way.

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dtm/core/memory.hpp>

#include "checks.hpp"
#include "ledger.hpp"
#include "pending.hpp"
#include "shared_channel.hpp"
#include "sums.hpp"

namespace dtm::comm {

class group {
 public:
  /// Operands lie in the host's memory, or in `storage`, from where they are copied.
  group(std::shared_ptr<channel> ranks, std::string name, ledger& book, memory* storage = nullptr)
      : channel_(std::move(ranks)), name_(std::move(name)), book_(book), storage_(storage) {}
  group(group const&) = delete;
  group& operator=(group const&) = delete;

  /// The same ranks and ledger; operands lie in `storage`.
  std::unique_ptr<group> with_operands_in(memory& storage) const {
    return std::make_unique<group>(channel_, name_, book_, &storage);
  }

  /// Copies of operands and results come from there and are on its account of communication;
  /// otherwise they are the process's.
  void take_buffers_from(memory& storage) { buffers_ = &storage; }

  /// From now on ranks read each other's memory. The same on all ranks.
  void share(std::shared_ptr<shared_channel> memory) { shared_ = std::move(memory); }
  /// Whether they do; _in_place operands lie in memory that is lent (node::locate).
  bool shares_memory() const { return shared_ != nullptr; }

  /// The communicator behind the group, for transports of other kinds between the same ranks.
  std::shared_ptr<channel> const& ranks() const { return channel_; }
  int rank() const { return channel_->rank(); }
  int size() const { return channel_->size(); }
  std::string_view name() const { return name_; }
  check_level level() const { return channel_->level(); }
  /// The ranks of the group in the numbering of the world, in the order of the group.
  std::span<int const> members() const { return channel_->members(); }

  /// out[i] = sum, max or min over the ranks of in[i]. `in` may equal `out`. Replicated afterwards.
  template <class T>
  pending all_reduce(T const* in, T* out, std::int64_t count, reduction how, call who) {
    return begin_all_reduce(in, out, count, summable<T>(), how, who);
  }

  /// out = the blocks of all ranks in rank order, `count` elements each. Replicated afterwards.
  template <class T>
  pending all_gather(T const* in, T* out, std::int64_t count, call who) {
    return begin_all_gather(in, out, count, mpi::datatype_of<T>(), who);
  }

  /// out = this rank's block of the sum over the ranks of in; `count` is the length of out, in has
  /// count * size().
  template <class T>
  pending reduce_scatter(T const* in, T* out, std::int64_t count, reduction how, call who) {
    return begin_reduce_scatter(in, out, count, summable<T>(), how, who);
  }

  /// Block r of `in` goes to rank r, block r of `out` comes from it; blocks are packed back to back
  /// in rank order.
  template <class T>
  pending all_to_all(T const* in, std::span<std::int64_t const> send_counts, T* out,
                     std::span<std::int64_t const> receive_counts, call who) {
    return begin_all_to_all(in, send_counts, out, receive_counts, mpi::datatype_of<T>(), who);
  }

  /// data on every rank = data on `root`. Replicated afterwards.
  template <class T>
  pending broadcast(T* data, std::int64_t count, int root, call who) {
    return begin_broadcast(data, count, mpi::datatype_of<T>(), root, who);
  }

  /// Sends to rank `to` of the group and receives from rank `from`; every rank takes part, as in a
  /// ring. to == rank() iff from == rank(): a copy.
  template <class T>
  pending shift(T const* in, T* out, std::int64_t count, int to, int from, call who) {
    return begin_shift(in, out, count, mpi::datatype_of<T>(), to, from, who);
  }

  pending barrier(call who);

  // ---- where shares_memory(), of an `in` that stays as it is until the wait: one copy
  /// read(r, in of r) is called once for every rank of the group when it can be read; `ordered`: in
  /// the order of the ranks.
  template <class T, class Read>
  pending all_to_all_in_place(T const* in, std::span<std::int64_t const> send_counts,
                              std::span<std::int64_t const> receive_counts, call who, bool ordered,
                              Read read);
  template <class T, class Read>
  pending all_gather_in_place(T const* in, std::int64_t count, call who, Read read);
  /// Ordered; `count` is of the block that goes to one rank.
  template <class T, class Read>
  pending reduce_scatter_in_place(T const* in, std::int64_t count, call who, Read read);
  /// Stands for an all_to_all whose elements ranks fetch, or bring, themselves: waits until all ranks
  /// have opened `mine` to each other.
  class opened;
  template <class T>
  opened open_to_peers(T const* mine, std::span<std::int64_t const> send_counts,
                       std::span<std::int64_t const> receive_counts, call who);

 private:
  using operation = detail::operation;

  template <class T>
  static mpi::datatype summable() {
    static_assert(
        sizeof(T) != 2,
        "dtm comm: 16-bit elements are storage; convert to float before reducing over ranks");
    static_assert(std::is_arithmetic_v<T>, "dtm comm: only numbers are reduced over ranks");
    auto type = mpi::datatype_of<T>();
    type.combine = detail::combine<T>;
    return type;
  }

  // ---- by shared memory, shared_group.hpp
  using begun = std::shared_ptr<operation>;
  using counts = std::span<std::int64_t const>;
  begun open_all_to_all(counts send_counts, counts receive_counts, mpi::datatype type,
                        call const& who);
  void lend_copy(operation& op, void const* in, std::size_t bytes);
  pending shared_all_reduce(begun op, void const* in, void* out, std::int64_t count,
                            mpi::datatype type, reduction how);
  pending shared_all_gather(begun op, void const* in, void* out, std::size_t block);
  pending shared_reduce_scatter(begun op, void const* in, void* out, std::int64_t count,
                                mpi::datatype type, reduction how);
  pending shared_all_to_all(begun op, void const* in, counts send_counts, void* out,
                            counts receive_counts, mpi::datatype type);
  pending shared_broadcast(begun op, void* data, std::size_t bytes, int root);
  pending shared_shift(begun op, void const* in, void* out, std::size_t bytes, int to, int from);
  pending shared_barrier(begun op);

  pending begin_all_reduce(void const* in, void* out, std::int64_t count, mpi::datatype type,
                           reduction how, call who);
  pending begin_all_gather(void const* in, void* out, std::int64_t count, mpi::datatype type,
                           call who);
  pending begin_reduce_scatter(void const* in, void* out, std::int64_t count, mpi::datatype type,
                               reduction how, call who);
  pending begin_all_to_all(void const* in, std::span<std::int64_t const> send_counts, void* out,
                           std::span<std::int64_t const> receive_counts, mpi::datatype type,
                           call who);
  pending begin_broadcast(void* data, std::int64_t count, mpi::datatype type, int root, call who);
  pending begin_shift(void const* in, void* out, std::int64_t count, mpi::datatype type, int to,
                      int from, call who);

  MPI_Comm native() const { return channel_->native(); }

  std::shared_ptr<operation> open(call const& who, mpi::datatype const& type, std::int64_t count,
                                  char const* how = "", int root = -1) {
    auto op = std::make_shared<operation>();
    op->what = channel_->open(who, name_, type.name, count, how, root);
    op->ranks = channel_.get();
    return op;
  }

  detail::refusal in_the_name_of(call const& who) const { return {who, name_, size()}; }

  void record(call const& who, mpi::datatype const& type, std::int64_t count, std::int64_t sent,
              std::int64_t self = 0) {
    book_.entries.push_back({who.operation, name_, who.tensor, count, type.bytes, sent, self,
                             who.where.file, who.where.line});
  }

  static std::size_t bytes(std::int64_t count, mpi::datatype const& type) {
    return std::size_t(mpi::checked_product(count, type.bytes, "bytes of"));
  }
  buffer fresh(std::size_t bytes) const { return {buffers_, bytes}; }
  // Between the operands, which may lie in a device's memory, and the buffers MPI works on.
  void fetch(std::byte* to, void const* from, std::size_t bytes) const {
    if (storage_ != nullptr)
      storage_->copy_to_host(to, from, bytes);
    else if (bytes > 0)
      std::memcpy(to, from, bytes);
  }
  static void store(memory* storage, void* to, std::byte const* from, std::size_t bytes) {
    if (storage != nullptr)
      storage->copy_from_host(to, from, bytes);
    else if (bytes > 0)
      std::memcpy(to, from, bytes);
  }
  /// All bits set are a NaN for every floating type: whoever reads before the data is there will
  /// see it.
  void spoil(void* out, void const* in, std::size_t bytes) const {
    if (!channel_->checks(check_level::signatures) || bytes == 0 || out == in) return;
    if (storage_ != nullptr)
      storage_->fill_bytes(out, 0xff, bytes);
    else
      std::memset(out, 0xff, bytes);
  }

  /// A group of one: the result is there at once.
  pending local(operation const& op, void* out, void const* in, std::size_t bytes) {
    if (storage_ != nullptr)
      storage_->copy_within(out, in, bytes);
    else if (bytes > 0 && out != in)
      std::memmove(out, in, bytes);
    channel_->close(op.what);
    return pending();
  }
  /// The result goes to `out` and is compared over the ranks when it is replicated.
  pending deliver(std::shared_ptr<operation> op, void* out, std::size_t bytes,
                  bool replicated) const {
    op->finish = [out, bytes, replicated, storage = storage_](operation& done) {
      store(storage, out, done.received.get(), bytes);
      if (replicated && done.ranks->checks(check_level::data))
        done.ranks->check_replicas(done.received.get(), bytes, done.what);
    };
    return pending(std::move(op));
  }

  std::shared_ptr<channel> channel_;
  std::string name_;
  ledger& book_;
  memory* storage_;
  memory* buffers_ = nullptr;
  std::shared_ptr<shared_channel> shared_;
};

inline pending group::begin_all_reduce(void const* in, void* out, std::int64_t count,
                                       mpi::datatype type, reduction how, call who) {
  in_the_name_of(who).require_count(count);
  auto op = open(who, type, count, comm::name(how));
  auto const size_in_bytes = bytes(count, type);
  record(who, type, count, mpi::checked_product(count, 2) * (size() - 1) / size());
  if (size() == 1) return local(*op, out, in, size_in_bytes);
  if (shared_) return shared_all_reduce(std::move(op), in, out, count, type, how);
  // each rank combines a slice of all operands, and gathers the slices
  std::int64_t const slice = (count + size() - 1) / size();
  auto const slice_bytes = bytes(slice, type);
  op->received = fresh(slice_bytes * std::size_t(size()));
  fetch(op->received.get(), in, size_in_bytes);
  std::memset(op->received.get() + size_in_bytes, 0, op->received.size() - size_in_bytes);
  spoil(out, in, size_in_bytes);
  op->requests = {mpi::all_to_all(op->received.get(), slice, type, native())};
  op->next = [=, this](operation& half) {
    auto const parts = detail::blocks_of(half.received.get(), slice_bytes, size());
    type.combine(half.received.get() + slice_bytes * std::size_t(rank()), parts, slice, how);
    half.requests = {mpi::all_gather(half.received.get(), slice, type, native())};
  };
  return deliver(std::move(op), out, size_in_bytes, true);
}

inline pending group::begin_all_gather(void const* in, void* out, std::int64_t count,
                                       mpi::datatype type, call who) {
  in_the_name_of(who).require_count(count);
  auto op = open(who, type, count);
  auto const block = bytes(count, type);
  auto const total = bytes(mpi::checked_product(count, size()), type);
  record(who, type, count, count * (size() - 1));
  if (size() == 1) return local(*op, out, in, block);
  if (shared_) return shared_all_gather(std::move(op), in, out, block);
  op->received = fresh(total);
  fetch(op->received.get() + block * std::size_t(rank()), in, block);
  spoil(out, in, total);
  op->requests = {mpi::all_gather(op->received.get(), count, type, native())};
  return deliver(std::move(op), out, total, true);
}

inline pending group::begin_reduce_scatter(void const* in, void* out, std::int64_t count,
                                           mpi::datatype type, reduction how, call who) {
  in_the_name_of(who).require_count(count);
  auto op = open(who, type, count, comm::name(how));
  auto const block = bytes(count, type);
  auto const total = bytes(mpi::checked_product(count, size()), type);
  record(who, type, count, count * (size() - 1));
  if (size() == 1) return local(*op, out, in, block);
  if (shared_) return shared_reduce_scatter(std::move(op), in, out, count, type, how);
  op->received = fresh(total);
  fetch(op->received.get(), in, total);
  spoil(out, in, block);
  op->requests = {mpi::all_to_all(op->received.get(), count, type, native())};
  op->next = [=, this](operation& done) {
    type.combine(done.received.get(), detail::blocks_of(done.received.get(), block, size()), count,
                 how);
  };
  return deliver(std::move(op), out, block, false);
}

inline pending group::begin_broadcast(void* data, std::int64_t count, mpi::datatype type, int root,
                                      call who) {
  in_the_name_of(who).require_rank("root", root);
  in_the_name_of(who).require_count(count);
  auto op = open(who, type, count, "", root);
  auto const size_in_bytes = bytes(count, type);
  record(who, type, count, count / size() * (size() - 1) + count % size() * (size() - 1) / size());
  if (size() == 1) return local(*op, data, data, size_in_bytes);
  if (shared_) return shared_broadcast(std::move(op), data, size_in_bytes, root);
  op->received = fresh(size_in_bytes);
  if (rank() == root)
    fetch(op->received.get(), data, size_in_bytes);
  else
    spoil(data, nullptr, size_in_bytes);
  op->requests = {mpi::broadcast(op->received.get(), count, type, root, native())};
  return deliver(std::move(op), data, size_in_bytes, true);
}

inline pending group::begin_shift(void const* in, void* out, std::int64_t count, mpi::datatype type,
                                  int to, int from, call who) {
  in_the_name_of(who).require_partners(rank(), to, from);
  in_the_name_of(who).require_count(count);
  auto op = open(who, type, count);
  auto const size_in_bytes = bytes(count, type);
  bool const stays = to == rank();
  record(who, type, count, stays ? 0 : count, stays ? count : 0);
  if (channel_->checks(check_level::signatures))
    detail::compare_partners(*channel_, op->what, to, from);
  if (stays) return local(*op, out, in, size_in_bytes);
  if (shared_) return shared_shift(std::move(op), in, out, size_in_bytes, to, from);
  op->sent = fresh(size_in_bytes);
  op->received = fresh(size_in_bytes);
  fetch(op->sent.get(), in, size_in_bytes);
  spoil(out, in, size_in_bytes);
  int const tag = int(op->what.sequence % 32768);  // the least range of tags that MPI guarantees
  op->requests.push_back(mpi::receive(op->received.get(), count, type, from, tag, native()));
  op->requests.push_back(mpi::send(op->sent.get(), count, type, to, tag, native()));
  return deliver(std::move(op), out, size_in_bytes, false);
}

inline pending group::begin_all_to_all(void const* in, std::span<std::int64_t const> send_counts,
                                       void* out, std::span<std::int64_t const> receive_counts,
                                       mpi::datatype type, call who) {
  in_the_name_of(who).require_counts(rank(), send_counts, receive_counts);
  std::size_t const me = std::size_t(rank());
  auto const send_offsets = mpi::packed_offsets(send_counts);
  auto const receive_offsets = mpi::packed_offsets(receive_counts);
  auto op = open(who, type, -1);
  if (channel_->checks(check_level::signatures))
    detail::compare_block_counts(*channel_, op->what, send_counts, receive_counts);
  record(who, type, send_offsets.back(), send_offsets.back() - send_counts[me], send_counts[me]);
  auto const own = bytes(send_counts[me], type);
  auto const* const own_in = static_cast<std::byte const*>(in) + bytes(send_offsets[me], type);
  std::size_t const own_at = bytes(receive_offsets[me], type);
  if (size() == 1) return local(*op, out, in, own);
  if (shared_) return shared_all_to_all(std::move(op), in, send_counts, out, receive_counts, type);

  // what stays at home is copied here; MPI moves the rest
  auto const sent_bytes = bytes(send_offsets.back(), type),
             received_bytes = bytes(receive_offsets.back(), type);
  op->sent = fresh(sent_bytes);
  op->received = fresh(received_bytes);
  fetch(op->sent.get(), in, sent_bytes);
  fetch(op->received.get() + own_at, own_in, own);
  spoil(out, in, received_bytes);
  auto blocks = std::make_shared<std::pair<mpi::blocks, mpi::blocks>>(
      mpi::blocks(send_counts, type), mpi::blocks(receive_counts, type));
  blocks->first.counts[me] = blocks->second.counts[me] = 0;
  op->arguments = blocks;
  op->requests = {mpi::all_to_all(op->sent.get(), blocks->first, op->received.get(), blocks->second,
                                  type, native())};
  return deliver(std::move(op), out, received_bytes, false);
}

inline pending group::barrier(call who) {
  auto op = open(who, {MPI_BYTE, 0, 0, ""}, 0);
  record(who, {MPI_BYTE, 0, 0, ""}, 0, 0);
  if (size() == 1) return local(*op, nullptr, nullptr, 0);
  if (shared_) return shared_barrier(std::move(op));
  op->requests = {mpi::barrier(native())};
  return pending(std::move(op));
}

}  // namespace dtm::comm

#include "shared_group.hpp"
