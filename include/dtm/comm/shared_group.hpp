#pragma once
// The operations of a group whose ranks share memory. Each rank lends its operand, or a copy of it that
// the operation owns, and every rank reads from the others what it needs: one copy, into `out`. An
// operation is complete on a rank when it has read and what it has lent has been read.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "group.hpp"

namespace dtm::comm {

namespace detail {

/// What this rank does in one step of a shared channel.
class shared_reading {
 public:
  using read_one = std::function<void(int rank, std::byte const* in)>;

  /// Ordered: nothing is read before all can be, and then in the order of the sources.
  shared_reading(shared_channel& ranks, shared_channel::step step, std::vector<int> sources,
                 bool ordered, read_one read)
      : ranks_(ranks),
        step_(step),
        sources_(std::move(sources)),
        ordered_(ordered),
        read_(std::move(read)) {}

  /// True when everything has been read.
  bool go_on() {
    if (ordered_) return go_on_together();
    std::erase_if(sources_, [&](int source) {
      return !withdrawn_ && is_there(source) && (read(source), finish(source));
    });
    return sources_.empty();
  }
  void lend(void const* data, int readers) {
    own_ = static_cast<std::byte const*>(data);
    lent_ = true;
    ranks_.post(step_, data, readers);
  }
  bool is_read() const { return !lent_ || ranks_.is_read(step_); }
  void withdraw() noexcept {
    if (lent_) ranks_.withdraw(step_);
  }

 private:
  /// All are read before one is acknowledged: a reduction may look at them again at the last.
  bool go_on_together() {
    if (withdrawn_ || !std::all_of(sources_.begin(), sources_.end(),
                                   [&](int source) { return is_there(source); }))
      return false;
    for (int source : sources_) read(source);
    for (int source : sources_) (void)finish(source);
    sources_.clear();
    return !withdrawn_;
  }
  void read(int source) {
    read_(source, source == ranks_.rank() ? own_ : ranks_.address(source, step_));
  }
  /// False where it was withdrawn while it was read.
  bool finish(int source) {
    if (source != ranks_.rank()) withdrawn_ |= !ranks_.acknowledge(source, step_);
    return !withdrawn_;
  }
  bool is_there(int source) const {
    return source == ranks_.rank() || ranks_.has_posted(source, step_);
  }

  shared_channel& ranks_;
  shared_channel::step step_;
  std::vector<int> sources_;
  bool ordered_;
  read_one read_;
  std::byte const* own_ = nullptr;
  bool lent_ = false, withdrawn_ = false;
};

/// This rank first, then the ones behind it: not all read from the same rank at once.
inline std::vector<int> ranks_from(int first, int count) {
  std::vector<int> order;
  for (int i = 0; i < count; ++i) order.push_back((first + i) % count);
  return order;
}
inline std::vector<int> ranks_in_order(int count) {
  return ranks_from(0, count);
}

/// What kind of operation it is, so that a rank does not take another for it.
inline std::uint64_t kind_of(operation const& op) {
  struct {
    char operation[32], element[32], reduction[8];
    std::int64_t root, count;
  } kind{};
  std::memcpy(kind.element, op.what.element, sizeof kind.element);
  std::memcpy(kind.reduction, op.what.reduction, sizeof kind.reduction);
  std::memcpy(kind.operation, op.what.operation, sizeof kind.operation);
  kind.root = op.what.root;
  kind.count = op.what.count;
  return std::uint64_t(hash_bytes(&kind, sizeof kind));
}

inline std::shared_ptr<background> background_of(shared_channel& ranks,
                                                 std::function<bool()> advance) {
  auto const sleep = [&ranks](background& work) { ranks.sleep([&] { return !work.go_on(); }); };
  return std::make_shared<background>(background{std::move(advance), sleep, ranks.patience()});
}

/// Waits where more is under way than there are control words for. Peers that wait read meanwhile, so
/// this ends.
inline shared_channel::step next_step(shared_channel& ranks, operation const& op) {
  auto const step = ranks.next(kind_of(op));
  auto const free = background_of(ranks, [&ranks, step] { return ranks.is_read(step); });
  op.ranks->wait(*free, op.what);
  return step;
}
inline auto read_step(shared_channel& ranks, operation const& op, std::vector<int> sources,
                      bool ordered, shared_reading::read_one read) {
  return std::make_shared<shared_reading>(ranks, next_step(ranks, op), std::move(sources), ordered,
                                          std::move(read));
}

/// The operation goes on by these readings, one after the other.
template <class... Reading>
pending by_shared_memory(shared_channel& ranks, std::shared_ptr<operation> op,
                         std::shared_ptr<Reading>... readings) {
  op->work = background_of(
      ranks, [=] { return (readings->go_on() && ...) && (readings->is_read() && ...); });
  op->withdraw = [=]() noexcept { (readings->withdraw(), ...); };
  op->ranks->go_on_with(op->work);
  return pending(std::move(op));
}

/// Into its place in `out`, unless it lies there.
inline void copy_bytes(void* out, void const* in, std::size_t bytes) {
  if (bytes > 0 && out != in) std::memcpy(out, in, bytes);
}

/// At check level 3, of a result that is there.
inline void compare_when_complete(operation& op, void const* out, std::size_t bytes) {
  op.finish = [out, bytes](operation& done) {
    if (done.ranks->checks(check_level::data)) done.ranks->check_replicas(out, bytes, done.what);
  };
}

}  // namespace detail

/// A copy, so that the caller's operand may change at once.
inline void group::lend_copy(operation& op, void const* in, std::size_t bytes) {
  op.sent = fresh(bytes);
  fetch(op.sent.get(), in, bytes);
}

inline pending group::shared_all_gather(std::shared_ptr<operation> op, void const* in, void* out,
                                        std::size_t block) {
  lend_copy(*op, in, block);
  spoil(out, nullptr, block * std::size_t(size()));
  auto reading = detail::read_step(
      *shared_, *op, detail::ranks_from(rank(), size()), false,
      [=](int source, std::byte const* from) {
        detail::copy_bytes(static_cast<std::byte*>(out) + block * std::size_t(source), from, block);
      });
  reading->lend(op->sent.get(), size() - 1);
  detail::compare_when_complete(*op, out, block * std::size_t(size()));
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

inline pending group::shared_reduce_scatter(std::shared_ptr<operation> op, void const* in,
                                            void* out, std::int64_t count, mpi::datatype type,
                                            reduction how) {
  auto const block = bytes(count, type);
  lend_copy(*op, in, block * std::size_t(size()));
  spoil(out, nullptr, block);
  auto const parts = std::make_shared<std::vector<std::byte const*>>();
  auto reading = detail::read_step(
      *shared_, *op, detail::ranks_in_order(size()), true,
      [=, me = std::size_t(rank()), last = size() - 1](int source, std::byte const* from) {
        parts->push_back(from + me * block);
        if (source == last) type.combine(out, *parts, count, how);
      });
  reading->lend(op->sent.get(), size() - 1);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

inline pending group::shared_all_reduce(std::shared_ptr<operation> op, void const* in, void* out,
                                        std::int64_t count, mpi::datatype type, reduction how) {
  auto const size_in_bytes = bytes(count, type);
  lend_copy(*op, in, size_in_bytes);
  spoil(out, in, size_in_bytes);
  detail::compare_when_complete(*op, out, size_in_bytes);
  auto const parts = std::make_shared<std::vector<std::byte const*>>();
  int const last = size() - 1;
  if (size_in_bytes <= detail::worth_sharing) {  // every rank combines everything
    auto reading = detail::read_step(*shared_, *op, detail::ranks_in_order(size()), true,
                                     [=](int source, std::byte const* from) {
                                       parts->push_back(from);
                                       if (source == last) type.combine(out, *parts, count, how);
                                     });
    reading->lend(op->sent.get(), last);
    return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
  }
  std::int64_t const slice = (count + size() - 1) / size();
  auto const length = [=](int of) {
    return std::clamp(count - of * slice, std::int64_t(0), slice);
  };
  auto const start = [=](int of) { return std::size_t(of * slice * type.bytes); };
  op->received = fresh(bytes(slice, type));
  int const me = rank();
  std::byte* const mine = op->received.get();
  auto gathering = detail::read_step(
      *shared_, *op, detail::ranks_from(me, size()), false, [=](int source, std::byte const* from) {
        detail::copy_bytes(static_cast<std::byte*>(out) + start(source), from,
                           std::size_t(length(source) * type.bytes));
      });
  auto combining = detail::read_step(*shared_, *op, detail::ranks_in_order(size()), true,
                                     [=, to = gathering.get()](int source, std::byte const* from) {
                                       parts->push_back(from + (length(me) > 0 ? start(me) : 0));
                                       if (source != last) return;
                                       type.combine(mine, *parts, length(me), how);
                                       to->lend(mine, last);
                                     });
  combining->lend(op->sent.get(), last);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(combining),
                                  std::move(gathering));
}

inline pending group::shared_broadcast(std::shared_ptr<operation> op, void* data, std::size_t bytes,
                                       int root) {
  bool const sends = rank() == root;
  auto reading =
      detail::read_step(*shared_, *op, sends ? std::vector<int>{} : std::vector<int>{root}, false,
                        [=](int, std::byte const* from) { detail::copy_bytes(data, from, bytes); });
  if (sends) {
    lend_copy(*op, data, bytes);
    reading->lend(op->sent.get(), size() - 1);
  } else {
    spoil(data, nullptr, bytes);
  }
  detail::compare_when_complete(*op, data, bytes);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

inline pending group::shared_shift(std::shared_ptr<operation> op, void const* in, void* out,
                                   std::size_t bytes, int to, int from) {
  (void)to;  // reads what this rank lends
  lend_copy(*op, in, bytes);
  spoil(out, in, bytes);
  auto reading = detail::read_step(*shared_, *op, {from}, false, [=](int, std::byte const* theirs) {
    detail::copy_bytes(out, theirs, bytes);
  });
  reading->lend(op->sent.get(), 1);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

/// The copy has offsets before it: where the block of each rank begins, in bytes.
inline pending group::shared_all_to_all(std::shared_ptr<operation> op, void const* in,
                                        std::span<std::int64_t const> send_counts, void* out,
                                        std::span<std::int64_t const> receive_counts,
                                        mpi::datatype type) {
  auto const send_offsets = mpi::packed_offsets(send_counts);
  auto receive_offsets = mpi::packed_offsets(receive_counts);
  std::size_t const before = send_offsets.size() * sizeof(std::int64_t);
  auto const sent = bytes(send_offsets.back(), type);
  op->sent = fresh(before + sent);
  std::memcpy(op->sent.get(), send_offsets.data(), before);
  fetch(op->sent.get() + before, in, sent);
  spoil(out, in, bytes(receive_offsets.back(), type));
  auto reading = detail::read_step(
      *shared_, *op, detail::ranks_from(rank(), size()), false,
      [=, this, about = op.get(), offsets = std::move(receive_offsets)](int source,
                                                                        std::byte const* from) {
        std::int64_t there[2];
        std::memcpy(there, from + std::size_t(rank()) * sizeof(std::int64_t), sizeof there);
        auto const at = offsets[std::size_t(source)], count = offsets[std::size_t(source) + 1] - at;
        if (there[1] - there[0] != count)
          channel_->fail(failure_kind::mismatch,
                         "collective mismatch: rank " +
                             std::to_string(members()[std::size_t(source)]) + " sends " +
                             std::to_string(there[1] - there[0]) + " elements to rank " +
                             std::to_string(members()[std::size_t(rank())]) + ", which expects " +
                             std::to_string(count) + ", in " + describe(about->what));
        detail::copy_bytes(static_cast<std::byte*>(out) + bytes(at, type),
                           from + before + bytes(there[0], type), bytes(count, type));
      });
  reading->lend(op->sent.get(), size() - 1);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

inline pending group::shared_barrier(std::shared_ptr<operation> op) {
  shared_->arrive(op->what.sequence);
  op->work = detail::background_of(*shared_, [ranks = shared_.get(), sequence = op->what.sequence] {
    return ranks->all_have_arrived(sequence);
  });
  op->withdraw = [] {};
  return pending(std::move(op));
}

// ---- operands that stay until the wait ----------------------------------------------------------
inline std::shared_ptr<detail::operation> group::open_all_to_all(
    std::span<std::int64_t const> send_counts, std::span<std::int64_t const> receive_counts,
    mpi::datatype type, call const& who) {
  in_the_name_of(who).require_counts(rank(), send_counts, receive_counts);
  auto op = open(who, type, -1);
  if (channel_->checks(check_level::signatures))
    detail::compare_block_counts(*channel_, op->what, send_counts, receive_counts);
  auto const sent = mpi::packed_offsets(send_counts).back();
  auto const own = send_counts[std::size_t(rank())];
  record(who, type, sent, sent - own, own);
  return op;
}

namespace detail {

template <class T, class Read>
shared_reading::read_one reader_of(Read read) {
  return [read = std::move(read)](int rank, std::byte const* in) mutable {
    read(rank, reinterpret_cast<T const*>(in));
  };
}

}  // namespace detail

template <class T, class Read>
pending group::all_to_all_in_place(T const* in, std::span<std::int64_t const> send_counts,
                                   std::span<std::int64_t const> receive_counts, call who,
                                   bool ordered, Read read) {
  auto op = open_all_to_all(send_counts, receive_counts, mpi::datatype_of<T>(), who);
  auto reading = detail::read_step(
      *shared_, *op, ordered ? detail::ranks_in_order(size()) : detail::ranks_from(rank(), size()),
      ordered, detail::reader_of<T>(std::move(read)));
  reading->lend(in, size() - 1);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

template <class T, class Read>
pending group::all_gather_in_place(T const* in, std::int64_t count, call who, Read read) {
  auto const type = mpi::datatype_of<T>();
  auto op = open(who, type, count);
  record(who, type, count, count * (size() - 1));
  auto reading = detail::read_step(*shared_, *op, detail::ranks_from(rank(), size()), false,
                                   detail::reader_of<T>(std::move(read)));
  reading->lend(in, size() - 1);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

template <class T, class Read>
pending group::reduce_scatter_in_place(T const* in, std::int64_t count, call who, Read read) {
  auto const type = summable<T>();
  auto op = open(who, type, count, comm::name(reduction::sum));
  record(who, type, count, count * (size() - 1));
  auto reading = detail::read_step(*shared_, *op, detail::ranks_in_order(size()), true,
                                   detail::reader_of<T>(std::move(read)));
  reading->lend(in, size() - 1);
  return detail::by_shared_memory(*shared_, std::move(op), std::move(reading));
}

}  // namespace dtm::comm
