#pragma once
// A world of which one process plays one rank, without peers and without data: what a program would do
// there is noted, nothing is sent and nothing waits.
//
//   dtm::comm::planned_world rank(64, 27);   // of 64 ranks, this is rank 27
//
// plan_ranks.hpp plays all of them and proves that what they would call fits together.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "agreement.hpp"
#include "signature.hpp"

namespace dtm::comm {

/// One operation as the played rank calls it: what ranks must agree on, and what must fit together.
/// Ranks are those of the world in `members`, and of the group elsewhere.
struct planned_operation {
  signature what{};
  std::shared_ptr<std::vector<int> const> members;
  std::vector<std::int64_t> send_counts, receive_counts;  // of an all_to_all
  int to = -1, from = -1;                                 // of a shift

  friend bool operator==(planned_operation const& a, planned_operation const& b) {
    return std::memcmp(&a.what, &b.what, sizeof a.what) == 0 && *a.members == *b.members &&
           a.send_counts == b.send_counts && a.receive_counts == b.receive_counts && a.to == b.to &&
           a.from == b.from;
  }
};

/// The operations of a rank in their order. Most of a program repeats itself: each different one is
/// kept once.
class planned_sequence {
 public:
  void add(planned_operation operation) {
    std::size_t at = kinds_.size();
    while (at > 0 && !(kinds_[at - 1] == operation)) --at;
    if (at == 0) {
      kinds_.push_back(std::move(operation));
      at = kinds_.size();
    }
    order_.push_back(at - 1);
  }
  std::size_t size() const { return order_.size(); }
  planned_operation const& operator[](std::size_t i) const { return kinds_[order_[i]]; }
  /// Equal for equal operations of this rank.
  std::size_t kind(std::size_t i) const { return order_[i]; }

 private:
  std::vector<planned_operation> kinds_;
  std::vector<std::size_t> order_;
};

class planned_world {
 public:
  /// Throws argument_error unless the world has such a rank.
  planned_world(int ranks, int rank) : rank_(rank), everyone_(members_of(ranks)) {
    if (rank < 0 || rank >= ranks)
      throw argument_error("dtm planner: rank " + std::to_string(rank) + " of a world of " +
                           std::to_string(ranks) + " ranks, which are numbered from 0");
  }
  planned_world(planned_world const&) = delete;
  planned_world& operator=(planned_world const&) = delete;

  int rank() const { return rank_; }
  int size() const { return int(everyone_->size()); }
  /// Data is what the higher levels check.
  check_level level() const { return check_level::cheap; }
  bool has_failed() const { return false; }
  void throw_if_peer_failed() const {}

  template <class F>
  auto run(F&& f, call_site where = call_site::current()) -> std::invoke_result_t<F> {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(f)();
      meet({"end of run", "", 0, where});
    } else {
      auto result = std::forward<F>(f)();
      meet({"end of run", "", 0, where});
      return result;
    }
  }
  void meet(call who) { note(make_signature(who, "world", 0, "", 0), everyone_); }

  /// What this rank has called, in order.
  planned_sequence const& sequence() const { return sequence_; }

  // ---- for groups ----
  using ranks_of_group = std::shared_ptr<std::vector<int> const>;
  ranks_of_group const& everyone() const { return everyone_; }
  /// `fitting` has the counts or partners of the operation. Alone there is nothing to agree on.
  void note(signature const& what, ranks_of_group const& members, planned_operation fitting = {}) {
    if (members->size() < 2) return;
    fitting.what = what;
    fitting.members = members;
    sequence_.add(std::move(fitting));
  }

 private:
  static ranks_of_group members_of(int ranks) {
    std::vector<int> everyone(std::size_t(ranks > 0 ? ranks : 0));
    std::iota(everyone.begin(), everyone.end(), 0);
    return std::make_shared<std::vector<int> const>(std::move(everyone));
  }

  int rank_;
  ranks_of_group everyone_;
  planned_sequence sequence_;
};

/// The value for which is planned where ranks would agree on one that they compute. Ranks that plan for
/// different values do not fit together.
template <class T>
agreed<T> planned_agreement(planned_world& ranks, T value, call_site where = call_site::current()) {
  static_assert(std::is_trivially_copyable_v<T>,
                "dtm comm: only trivially copyable values are agreed on");
  auto const layout = std::uint64_t(hash_bytes(&value, sizeof value));
  ranks.note(make_signature({"agree_on", "", layout, where}, "world", 0, mpi::name_of<T>(), 1),
             ranks.everyone());
  return agreed<T>(std::move(value));
}

inline void agree(planned_world& ranks, bool ok, std::string const& text, call_site where) {
  ranks.meet({"agree", "", 0, where});
  if (!ok) throw error(text);
}

template <std::invocable F>
auto agree(planned_world& ranks, F&& risky, call_site where) -> std::invoke_result_t<F> {
  ranks.meet({"agree", "", 0, where});
  return std::forward<F>(risky)();
}

}  // namespace dtm::comm
