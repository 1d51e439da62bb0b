#pragma once
// A channel is one communicator and the ranks behind it, with the checks that every operation on it
// goes through. Groups are built on channels; several groups with the same ranks share one.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wait.hpp"

namespace dtm::comm {

class channel {
 public:
  /// Takes over `comm` unless it is borrowed or MPI_COMM_NULL (a single rank needs none). `members`
  /// are ranks of the world, in the order of the channel.
  channel(control& ranks, options const& settings, MPI_Comm comm, bool owned,
          std::vector<int> members, int rank)
      : ranks_(ranks),
        settings_(settings),
        comm_(comm),
        owned_(owned),
        members_(std::move(members)),
        rank_(rank) {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  channel(channel const&) = delete;
  channel& operator=(channel const&) = delete;

  /// After a failure the communicator is abandoned: messages for it may still be under way.
  ~channel() {
    if (!owned_ || comm_ == MPI_COMM_NULL || !mpi::is_running()) return;
    if (ranks_.failed())
      detail::free_at_finalize(comm_);
    else
      MPI_Comm_free(&comm_);
  }

  int rank() const { return rank_; }
  int size() const { return int(members_.size()); }
  MPI_Comm native() const { return comm_; }
  std::span<int const> members() const { return members_; }
  check_level level() const { return settings_.level; }
  bool checks(check_level level) const { return settings_.level >= level && size() > 1; }

  /// Opens an operation: refuses when the world has failed, numbers it, and at level 2 compares its
  /// signature.
  signature open(call const& who, std::string_view group, char const* element, std::int64_t count,
                 char const* reduction = "", int root = -1) {
    ranks_.serve();
    signature const s = make_signature(who, group, ++sequence_, element, count, reduction, root);
    if (ranks_.failed()) ranks_.throw_if_failed(describe(s));
    if (checks(check_level::signatures)) compare(s);
    return s;
  }

  void wait(std::span<MPI_Request> requests, signature const& what) {
    comm::wait(ranks_, requests, settings_.deadline_seconds, what);
  }

  void wait(background& work, signature const& what) {
    wait_until(
        ranks_, [&] { return work.go_on(); }, settings_.deadline_seconds, what,
        patience(work.turns), [&] { work.sleep(work); });
  }
  void go_on_with(std::shared_ptr<background> const& work) { ranks_.go_on_with(work); }

  /// Closes an operation: the answer to "what did you complete last?".
  void close(signature const& what) { ranks_.completed(what); }

  /// Ends the world with an error that all ranks throw.
  [[noreturn]] void fail(failure_kind kind, std::string text) {
    ranks_.declare({kind, ranks_.rank(), std::move(text)});
    ranks_.throw_if_failed();
    throw error("dtm comm: a failure that was declared is not known");
  }

  // ---- small exchanges between the ranks of the channel, for checks and agreements
  // ----------------------
  /// True iff `value` (not negative) is the same on all ranks.
  bool same_everywhere(std::int64_t value, signature const& what) {
    auto largest = exchange<std::int64_t>(
        2,
        [&](std::int64_t* data) {
          data[0] = value;
          data[1] = -value;
          return mpi::all_reduce(data, 2, mpi::datatype_of<std::int64_t>(), reduction::max, comm_);
        },
        what);
    return largest[0] == -largest[1];
  }

  /// Every rank's `mine`, in the order of the channel. All spans have the same length.
  template <class T>
  std::vector<T> gather(std::span<T const> mine, signature const& what) {
    if (size() == 1) return {mine.begin(), mine.end()};
    return exchange<T>(
        mine.size() * members_.size(),
        [&](T* data) {
          std::copy(mine.begin(), mine.end(), data + std::size_t(rank_) * mine.size());
          return mpi::all_gather(data, std::int64_t(mine.size()), mpi::datatype_of<T>(), comm_);
        },
        what);
  }

  /// Check level 3: `bytes` at `data` are the same on all ranks, or replication_error names those
  /// that differ.
  void check_replicas(void const* data, std::size_t bytes, signature const& what) {
    std::int64_t const mine = hash_bytes(data, bytes);
    if (same_everywhere(mine, what)) return;
    auto const hashes = gather<std::int64_t>(std::span(&mine, 1), what);
    std::vector<int> minority;
    auto const occurrences = [&](std::int64_t h) {
      return std::count(hashes.begin(), hashes.end(), h);
    };
    auto const usual = *std::max_element(hashes.begin(), hashes.end(), [&](auto a, auto b) {
      return occurrences(a) < occurrences(b);
    });
    for (std::size_t i = 0; i < hashes.size(); ++i)
      if (hashes[i] != usual) minority.push_back(members_[i]);
    fail(failure_kind::replication, "replicas differ bit for bit: " + detail::ranks_text(minority) +
                                        " against the others, after " + describe(what));
  }

 private:
  void compare(signature const& mine) {
    if (same_everywhere(hash(mine), mine)) return;
    auto const all = gather<signature>(std::span(&mine, 1), mine);
    fail(failure_kind::mismatch, mismatch_table(all, members_));
  }

  /// A collective on memory that outlives this call if the operation is abandoned.
  template <class T, class Start>
  std::vector<T> exchange(std::size_t count, Start&& start, signature const& what) {
    auto data = std::make_shared<std::vector<T>>(count);
    MPI_Request request = start(data->data());
    try {
      wait(std::span(&request, 1), what);
    } catch (...) {
      detail::keep_until_exit(std::move(data));
      throw;
    }
    return std::move(*data);
  }

  control& ranks_;
  options const& settings_;
  MPI_Comm comm_;
  bool owned_;
  std::vector<int> members_;
  int rank_;
  std::uint64_t sequence_ = 0;
};

}  // namespace dtm::comm
