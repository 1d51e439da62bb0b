#pragma once
// Plays the ranks of a world in turn and proves that what they call fits together: the ranks of every
// group issue the same operations in the same order, with the same arguments, and what one sends is what
// the other expects. A program that passes cannot hang or mismatch for its sequence of collectives.
//
//   auto const of_ranks = comm::plan_ranks(64, [&](comm::planned_world& world) {
//     context<planned<host>, grid> ctx(world, {1, 8, 8});
//     ...
//     return measure(ctx, [&] { ... });
//   });                                      // one result a rank, or collective_mismatch

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "planned_world.hpp"

namespace dtm::comm {

namespace detail {

/// The replay of sequences that were noted rank by rank: an operation is complete when all members of
/// its group that were played have come to it.
class planned_replay {
 public:
  explicit planned_replay(std::vector<std::unique_ptr<planned_world>> const& played)
      : played_(played), next_(played.size(), 0) {
    for (std::size_t i = 0; i < played.size(); ++i) index_[played[i]->rank()] = i;
  }

  /// Throws collective_mismatch.
  void run() {
    std::vector<std::size_t> ready(played_.size());
    std::iota(ready.begin(), ready.end(), std::size_t(0));
    while (!ready.empty()) {
      std::size_t const i = ready.back();
      ready.pop_back();
      if (ended(i)) continue;
      auto const group = played_members(i);
      if (!all_are_there(i, group)) continue;  // the last that comes completes it
      compare(group);
      for (std::size_t member : group) ++next_[member];
      ++completed_[*head(group.front(), -1).members];
      ready.insert(ready.end(), group.begin(), group.end());
    }
    for (std::size_t i = 0; i < played_.size(); ++i)
      if (!ended(i)) refuse_stall(i);
  }

 private:
  planned_sequence const& sequence(std::size_t i) const { return played_[i]->sequence(); }
  bool ended(std::size_t i) const { return next_[i] == sequence(i).size(); }
  planned_operation const& head(std::size_t i, int step = 0) const {
    return sequence(i)[next_[i] + std::size_t(step)];
  }

  std::vector<std::size_t> played_members(std::size_t i) const {
    std::vector<std::size_t> group;
    for (int rank : *head(i).members)
      if (auto const at = index_.find(rank); at != index_.end()) group.push_back(at->second);
    return group;
  }
  bool all_are_there(std::size_t i, std::vector<std::size_t> const& group) const {
    auto const& members = head(i).members;
    return std::all_of(group.begin(), group.end(), [&](std::size_t other) {
      return !ended(other) && (head(other).members == members || *head(other).members == *members);
    });
  }

  signature numbered(std::size_t i) const {
    signature what = head(i).what;
    auto const before = completed_.find(*head(i).members);
    what.sequence = 1 + (before == completed_.end() ? 0 : before->second);
    return what;
  }
  std::vector<int> ranks_of(std::vector<std::size_t> const& group) const {
    std::vector<int> ranks;
    for (std::size_t i : group) ranks.push_back(played_[i]->rank());
    return ranks;
  }

  void compare(std::vector<std::size_t> const& group) {
    std::vector<std::size_t> kinds;
    for (std::size_t i : group) {
      kinds.push_back(i);
      kinds.push_back(sequence(i).kind(next_[i]));
    }
    if (!seen_.insert(std::move(kinds)).second) return;  // the same operation as once before
    compare_signatures(group);
    for (std::size_t i : group) {
      compare_counts(i, group);
      compare_partners(i);
    }
  }

  void compare_signatures(std::vector<std::size_t> const& group) const {
    auto const& first = head(group.front()).what;
    bool const same = std::all_of(group.begin(), group.end(), [&](std::size_t i) {
      return std::memcmp(&head(i).what, &first, sizeof first) == 0;
    });
    if (same) return;
    std::vector<signature> all;
    for (std::size_t i : group) all.push_back(numbered(i));
    throw collective_mismatch(mismatch_table(all, ranks_of(group)));
  }

  void compare_counts(std::size_t from, std::vector<std::size_t> const& group) const {
    auto const& members = *head(from).members;
    auto const place = [&](std::size_t i) {
      return std::size_t(std::find(members.begin(), members.end(), played_[i]->rank()) -
                         members.begin());
    };
    auto const& sent = head(from).send_counts;
    if (sent.empty()) return;
    std::size_t const at = place(from);
    for (std::size_t to : group) {
      auto const& expected = head(to).receive_counts;
      std::size_t const there = place(to);
      if (sent[there] != expected[at])
        throw collective_mismatch("collective mismatch: the counts of " + describe(numbered(from)) +
                                  " do not fit together\n  rank " + std::to_string(members[at]) +
                                  " sends " + std::to_string(sent[there]) + " elements to rank " +
                                  std::to_string(members[there]) + ", which expects " +
                                  std::to_string(expected[at]));
    }
  }

  void compare_partners(std::size_t i) const {
    auto const& mine = head(i);
    if (mine.to < 0) return;
    auto const& members = *mine.members;
    auto const at = index_.find(members[std::size_t(mine.to)]);
    if (at == index_.end()) return;
    int const awaited = members[std::size_t(head(at->second).from)];
    if (awaited != played_[i]->rank())
      throw collective_mismatch("collective mismatch: the partners of " + describe(numbered(i)) +
                                " do not fit together\n  rank " +
                                std::to_string(played_[i]->rank()) + " sends to rank " +
                                std::to_string(members[std::size_t(mine.to)]) +
                                ", which waits for rank " + std::to_string(awaited));
  }

  /// Nobody can go on: the ranks of one group are in operations of different groups, or at their end.
  [[noreturn]] void refuse_stall(std::size_t i) const {
    std::string text = "collective mismatch: rank " + std::to_string(played_[i]->rank()) +
                       " calls " + describe(numbered(i)) +
                       ", and not all ranks of the group come to it";
    int listed = 0;
    for (std::size_t other : played_members(i)) {
      if (!ended(other) && *head(other).members == *head(i).members) continue;
      if (++listed > 8) continue;
      text += "\n  rank " + std::to_string(played_[other]->rank()) +
              (ended(other) ? " has ended after " + std::to_string(next_[other]) + " operations"
                            : " calls " + describe(numbered(other)));
    }
    if (listed > 8) text += "\n  and " + std::to_string(listed - 8) + " more";
    throw collective_mismatch(text);
  }

  std::vector<std::unique_ptr<planned_world>> const& played_;
  std::vector<std::size_t> next_;                        // of each rank, in its sequence
  std::map<int, std::size_t> index_;                     // by rank
  std::map<std::vector<int>, std::uint64_t> completed_;  // by the ranks of a group
  std::set<std::vector<std::size_t>> seen_;
};

}  // namespace detail

/// play(planned_world&) for the given ranks of a world of `ranks`. What is proved is proved of these.
/// Throws collective_mismatch, or what `play` throws, with the rank in its text.
template <class Play>
auto plan_ranks(int ranks, std::vector<int> const& which, Play&& play) {
  using result = std::invoke_result_t<Play, planned_world&>;
  std::vector<std::unique_ptr<planned_world>> played;
  std::conditional_t<std::is_void_v<result>, std::vector<char>, std::vector<result>> results;
  for (int rank : which) {
    auto& world = *played.emplace_back(std::make_unique<planned_world>(ranks, rank));
    try {
      if constexpr (std::is_void_v<result>)
        play(world);
      else
        results.push_back(play(world));
    } catch (...) {
      auto failed = current_failure(rank);
      failed.text +=
          " (planned rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ")";
      throw_same(failed);
    }
  }
  detail::planned_replay(played).run();
  if constexpr (!std::is_void_v<result>) return results;
}

/// Every rank.
template <class Play>
auto plan_ranks(int ranks, Play&& play) {
  std::vector<int> all(std::size_t(ranks > 0 ? ranks : 0));
  std::iota(all.begin(), all.end(), 0);
  return plan_ranks(ranks, all, std::forward<Play>(play));
}

}  // namespace dtm::comm
