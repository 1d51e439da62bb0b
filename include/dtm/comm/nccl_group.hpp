#pragma once
// The ranks that take part in an operation, with operands in the memory of their GPUs, moved by
// NCCL on the communication stream (nccl_stream.hpp). It models comm/communicator.hpp: the same
// operations, checks and ledger as `group`, whose channel it shares for what ranks compare.
//
// `wait` of an operation lets the compute stream wait, never the host, so operands and results are
// those of the compute stream: what was given to it before an operation begins comes before, what
// is given after the wait comes after. Between the two `in` must not change and `out` must not be
// read; both may be released after the wait, since their next user works on the compute stream.
// `in` and `out` may not overlap, but for an all_reduce in place.
//
// While the compute stream is captured, comparisons between ranks run once, at the capture; results
// are not compared.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dtm/core/memory.hpp>

#include "ledger.hpp"
#include "checks.hpp"
#include "nccl_pending.hpp"

namespace dtm::comm {

class nccl_group {
 public:
  /// `communicator` has the ranks of `ranks`, and may be missing where that is one. `token` points
  /// to four bytes of the device for barriers.
  nccl_group(nccl_stream& stream, nccl_communicator* communicator, std::shared_ptr<channel> ranks,
             std::string name, ledger& book, memory& storage, void* token)
      : stream_(stream),
        communicator_(communicator),
        channel_(std::move(ranks)),
        name_(std::move(name)),
        book_(book),
        storage_(storage),
        token_(token) {}
  nccl_group(nccl_group const&) = delete;
  nccl_group& operator=(nccl_group const&) = delete;

  int rank() const { return channel_->rank(); }
  int size() const { return channel_->size(); }
  std::string_view name() const { return name_; }
  check_level level() const { return channel_->level(); }
  /// The ranks of the group in the numbering of the world, in the order of the group.
  std::span<int const> members() const { return channel_->members(); }

  /// out[i] = sum, max or min over the ranks of in[i]. `in` may equal `out`. Replicated afterwards.
  template <class T>
  nccl_pending all_reduce(T const* in, T* out, std::int64_t count, reduction how, call who) {
    return begin_all_reduce(in, out, count, nccl::summable<T>(), how, who);
  }

  /// out = the blocks of all ranks in rank order, `count` elements each. Replicated afterwards.
  template <class T>
  nccl_pending all_gather(T const* in, T* out, std::int64_t count, call who) {
    return begin_all_gather(in, out, count, nccl::datatype_of<T>(), who);
  }

  /// out = this rank's block of the sum over the ranks of in; `count` is the length of out, in has
  /// count * size().
  template <class T>
  nccl_pending reduce_scatter(T const* in, T* out, std::int64_t count, reduction how, call who) {
    return begin_reduce_scatter(in, out, count, nccl::summable<T>(), how, who);
  }

  /// Block r of `in` goes to rank r, block r of `out` comes from it; blocks are packed back to back
  /// in rank order.
  template <class T>
  nccl_pending all_to_all(T const* in, std::span<std::int64_t const> send_counts, T* out,
                          std::span<std::int64_t const> receive_counts, call who) {
    return begin_all_to_all(in, send_counts, out, receive_counts, nccl::datatype_of<T>(), who);
  }

  /// data on every rank = data on `root`. Replicated afterwards.
  template <class T>
  nccl_pending broadcast(T* data, std::int64_t count, int root, call who) {
    return begin_broadcast(data, count, nccl::datatype_of<T>(), root, who);
  }

  /// Sends to rank `to` of the group and receives from rank `from`; every rank takes part, as in a
  /// ring. to == rank() iff from == rank(): a copy.
  template <class T>
  nccl_pending shift(T const* in, T* out, std::int64_t count, int to, int from, call who) {
    return begin_shift(in, out, count, nccl::datatype_of<T>(), to, from, who);
  }

  /// What the compute stream is given after the wait begins when all ranks' compute streams have
  /// done what they were given before.
  nccl_pending barrier(call who);

 private:
  using datatype = nccl::datatype;

  nccl_pending begin_all_reduce(void const* in, void* out, std::int64_t count, datatype type,
                                reduction how, call const& who);
  nccl_pending begin_all_gather(void const* in, void* out, std::int64_t count, datatype type,
                                call const& who);
  nccl_pending begin_reduce_scatter(void const* in, void* out, std::int64_t count, datatype type,
                                    reduction how, call const& who);
  nccl_pending begin_all_to_all(void const* in, std::span<std::int64_t const> send_counts,
                                void* out, std::span<std::int64_t const> receive_counts,
                                datatype type, call const& who);
  nccl_pending begin_broadcast(void* data, std::int64_t count, datatype type, int root,
                               call const& who);
  nccl_pending begin_shift(void const* in, void* out, std::int64_t count, datatype type, int to,
                           int from, call const& who);

  ncclComm_t native() const { return communicator_->native(); }
  detail::refusal refusing(call const& who) const { return {who, name_, size()}; }

  /// From here on the other ranks are in it too, or hear why not.
  signature open(call const& who, datatype const& type, std::int64_t count, char const* how = "",
                 int root = -1) {
    auto const what =
        stream_.guarded([&] { return channel_->open(who, name_, type.name, count, how, root); });
    stream_.throw_if_failed(what);
    return what;
  }
  void record(call const& who, datatype const& type, std::int64_t count, std::int64_t sent,
              std::int64_t self = 0) {
    book_.entries.push_back({who.operation, name_, who.tensor, count, type.bytes, sent, self,
                             who.where.file, who.where.line});
  }
  /// All bits set are a NaN for every floating type: whoever reads before the compute stream has
  /// waited will see it.
  void spoil(void* out, std::size_t bytes) {
    if (channel_->checks(check_level::signatures)) storage_.fill_bytes(out, 0xff, bytes);
  }

  /// No message is needed: a copy in the compute stream.
  nccl_pending local(signature const& what, void* out, void const* in, std::size_t bytes) {
    storage_.copy_within(out, in, bytes);
    channel_->close(what);
    return {};
  }

  static void nothing() {}
  template <class Before, class Calls>
  nccl_pending launch(signature const& what, Before&& before, Calls&& calls,
                      nccl_pending::replica result = {}) {
    if (!channel_->checks(check_level::data) || result.bytes == 0) result = {};
    return {stream_, stream_.launch(*communicator_, what, before, calls), result};
  }

  nccl_stream& stream_;
  nccl_communicator* communicator_;
  std::shared_ptr<channel> channel_;
  std::string name_;
  ledger& book_;
  memory& storage_;
  void* token_;
};

inline nccl_pending nccl_group::begin_all_reduce(void const* in, void* out, std::int64_t count,
                                                 datatype type, reduction how, call const& who) {
  refusing(who).require_count(count);
  auto const size_in_bytes = type.bytes_of(count);
  if (in != out) refusing(who).require_apart(in, size_in_bytes, out, size_in_bytes);
  auto const what = open(who, type, count, comm::name(how));
  record(who, type, count, mpi::checked_product(count, 2) * (size() - 1) / size());
  if (size() == 1) return local(what, out, in, size_in_bytes);
  if (in != out) spoil(out, size_in_bytes);
  return launch(what, nothing,
                [&] {
                  return ncclAllReduce(in, out, type.units_of(count), type.type,
                                       nccl::operation_of(how), native(), stream_.native());
                },
                {&storage_, out, size_in_bytes});
}

inline nccl_pending nccl_group::begin_all_gather(void const* in, void* out, std::int64_t count,
                                                 datatype type, call const& who) {
  refusing(who).require_count(count);
  auto const block = type.bytes_of(count);
  auto const total = type.bytes_of(mpi::checked_product(count, size()));
  refusing(who).require_apart(in, block, out, total);
  auto const what = open(who, type, count);
  record(who, type, count, count * (size() - 1));
  if (size() == 1) return local(what, out, in, block);
  spoil(out, total);
  return launch(what, nothing,
                [&] {
                  return ncclAllGather(in, out, type.units_of(count), type.type, native(),
                                       stream_.native());
                },
                {&storage_, out, total});
}

inline nccl_pending nccl_group::begin_reduce_scatter(void const* in, void* out, std::int64_t count,
                                                     datatype type, reduction how,
                                                     call const& who) {
  refusing(who).require_count(count);
  auto const block = type.bytes_of(count);
  auto const total = type.bytes_of(mpi::checked_product(count, size()));
  refusing(who).require_apart(in, total, out, block);
  auto const what = open(who, type, count, comm::name(how));
  record(who, type, count, count * (size() - 1));
  if (size() == 1) return local(what, out, in, block);
  spoil(out, block);
  return launch(what, nothing, [&] {
    return ncclReduceScatter(in, out, type.units_of(count), type.type, nccl::operation_of(how),
                             native(), stream_.native());
  });
}

inline nccl_pending nccl_group::begin_broadcast(void* data, std::int64_t count, datatype type,
                                                int root, call const& who) {
  refusing(who).require_rank("root", root);
  refusing(who).require_count(count);
  auto const size_in_bytes = type.bytes_of(count);
  auto const what = open(who, type, count, "", root);
  record(who, type, count, count / size() * (size() - 1) + count % size() * (size() - 1) / size());
  if (size() == 1) return local(what, data, data, size_in_bytes);
  if (rank() != root) spoil(data, size_in_bytes);
  return launch(what, nothing,
                [&] {
                  return ncclBroadcast(data, data, type.units_of(count), type.type, root, native(),
                                       stream_.native());
                },
                {&storage_, data, size_in_bytes});
}

inline nccl_pending nccl_group::begin_shift(void const* in, void* out, std::int64_t count,
                                            datatype type, int to, int from, call const& who) {
  auto const refusal = refusing(who);
  refusal.require_partners(rank(), to, from);
  refusal.require_count(count);
  auto const size_in_bytes = type.bytes_of(count);
  refusal.require_apart(in, size_in_bytes, out, size_in_bytes);
  auto const what = open(who, type, count);
  bool const stays = to == rank();
  record(who, type, count, stays ? 0 : count, stays ? count : 0);
  if (channel_->checks(check_level::signatures))
    stream_.guarded([&] { detail::compare_partners(*channel_, what, to, from); });
  if (stays) return local(what, out, in, size_in_bytes);
  spoil(out, size_in_bytes);
  return launch(what, nothing, [&] {
    auto const n = type.units_of(count);
    auto const sent = ncclSend(in, n, type.type, to, native(), stream_.native());
    if (!nccl::accepted(sent)) return sent;
    return ncclRecv(out, n, type.type, from, native(), stream_.native());
  });
}

inline nccl_pending nccl_group::begin_all_to_all(void const* in,
                                                 std::span<std::int64_t const> send_counts,
                                                 void* out,
                                                 std::span<std::int64_t const> receive_counts,
                                                 datatype type, call const& who) {
  auto const refusal = refusing(who);
  refusal.require_counts(rank(), send_counts, receive_counts);
  std::size_t const ranks = std::size_t(size()), me = std::size_t(rank());
  auto const send_offsets = mpi::packed_offsets(send_counts);
  auto const receive_offsets = mpi::packed_offsets(receive_counts);
  auto const received_bytes = type.bytes_of(receive_offsets.back());
  if (ranks > 1 || in != out)
    refusal.require_apart(in, type.bytes_of(send_offsets.back()), out, received_bytes);
  auto const what = open(who, type, -1);
  if (channel_->checks(check_level::signatures))
    stream_.guarded(
        [&] { detail::compare_block_counts(*channel_, what, send_counts, receive_counts); });
  record(who, type, send_offsets.back(), send_offsets.back() - send_counts[me], send_counts[me]);
  auto const source = [&](std::size_t r) {
    return static_cast<std::byte const*>(in) + type.bytes_of(send_offsets[r]);
  };
  auto const target = [&](std::size_t r) {
    return static_cast<std::byte*>(out) + type.bytes_of(receive_offsets[r]);
  };
  auto const own = type.bytes_of(send_counts[me]);
  if (ranks == 1) return local(what, out, in, own);
  spoil(out, received_bytes);
  return launch(
      what,
      [&] {
        if (own > 0)
          gpu::check(cudaMemcpyAsync(target(me), source(me), own, cudaMemcpyDeviceToDevice,
                                     stream_.native()),
                     "cudaMemcpyAsync of a rank's own block");
      },
      [&] {
        auto status = ncclSuccess;
        for (std::size_t step = 1; step < ranks; ++step) {  // not all to the same rank at first
          std::size_t const to = (me + step) % ranks, from = (me + ranks - step) % ranks;
          if (send_counts[to] > 0)
            status = ncclSend(source(to), type.units_of(send_counts[to]), type.type, int(to),
                              native(), stream_.native());
          if (nccl::accepted(status) && receive_counts[from] > 0)
            status = ncclRecv(target(from), type.units_of(receive_counts[from]), type.type,
                              int(from), native(), stream_.native());
          if (!nccl::accepted(status)) break;
        }
        return status;
      });
}

inline nccl_pending nccl_group::barrier(call who) {
  datatype const none{ncclInt32, 0, 0, ""};
  auto const what = open(who, none, 0);
  record(who, none, 0, 0);
  if (size() == 1) return local(what, nullptr, nullptr, 0);
  return launch(what, nothing, [&] {
    return ncclAllReduce(token_, token_, 1, ncclInt32, ncclMax, native(), stream_.native());
  });
}

}  // namespace dtm::comm
