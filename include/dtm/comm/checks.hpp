#pragma once
// Check level 2: what a signature cannot hold, because it differs between ranks by design. And the
// sentences about impossible arguments.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "channel.hpp"

namespace dtm::comm::detail {

/// What each rank sends to each other is what that one expects, or all ranks throw the list of
/// pairs that differ.
inline void compare_block_counts(channel& ranks, signature const& what,
                                 std::span<std::int64_t const> send_counts,
                                 std::span<std::int64_t const> receive_counts) {
  std::vector<std::int64_t> mine(send_counts.begin(), send_counts.end());
  mine.insert(mine.end(), receive_counts.begin(), receive_counts.end());
  auto const all = ranks.gather<std::int64_t>(mine, what);
  std::size_t const size = std::size_t(ranks.size());
  std::string text;
  int wrong = 0;
  for (std::size_t from = 0; from < size; ++from)
    for (std::size_t to = 0; to < size; ++to) {
      auto const sent = all[from * 2 * size + to], expected = all[to * 2 * size + size + from];
      if (sent != expected && ++wrong <= 8)
        text += "\n  rank " + std::to_string(ranks.members()[from]) + " sends " +
                std::to_string(sent) + " elements to rank " + std::to_string(ranks.members()[to]) +
                ", which expects " + std::to_string(expected);
    }
  if (wrong > 8) text += "\n  and " + std::to_string(wrong - 8) + " more pairs";
  if (wrong > 0)
    ranks.fail(failure_kind::mismatch, "collective mismatch: the counts of " + describe(what) +
                                           " do not fit together" + text);
}

/// Whoever is sent to waits for the sender.
inline void compare_partners(channel& ranks, signature const& what, int to, int from) {
  int const mine[] = {to, from};
  auto const all = ranks.gather<int>(mine, what);
  auto const members = ranks.members();
  std::string text;
  for (std::size_t r = 0; r < all.size() / 2; ++r) {
    auto const target = std::size_t(all[2 * r]);
    auto const awaited = all[2 * target + 1];
    if (awaited != int(r))
      text += "\n  rank " + std::to_string(members[r]) + " sends to rank " +
              std::to_string(members[target]) + ", which waits for rank " +
              std::to_string(members[std::size_t(awaited)]);
  }
  if (!text.empty())
    ranks.fail(failure_kind::mismatch, "collective mismatch: the partners of " + describe(what) +
                                           " do not fit together" + text);
}

/// Throws argument_error in the name of one call.
struct refusal {
  call const& who;
  std::string_view group;
  int size;

  [[noreturn]] void refuse(std::string const& why) const {
    throw argument_error(std::string(who.operation) + " on " + std::string(group) + ", called at " +
                         who.where.file + ":" + std::to_string(who.where.line) + ": " + why);
  }
  void require_count(std::int64_t count) const {
    if (count < 0) refuse("count " + std::to_string(count) + " is negative");
  }
  void require_rank(char const* what, int rank) const {
    if (rank < 0 || rank >= size)
      refuse(std::string(what) + " " + std::to_string(rank) + " is not a rank of this group of " +
             std::to_string(size));
  }
  /// Of an all_to_all on `rank`.
  void require_counts(int rank, std::span<std::int64_t const> send_counts,
                      std::span<std::int64_t const> receive_counts) const {
    std::size_t const ranks = std::size_t(size), me = std::size_t(rank);
    if (send_counts.size() != ranks || receive_counts.size() != ranks)
      refuse("as many counts as ranks are needed: " + std::to_string(ranks) + ", but " +
             std::to_string(send_counts.size()) + " to send and " +
             std::to_string(receive_counts.size()) + " to receive");
    if (send_counts[me] != receive_counts[me])
      refuse("sends " + std::to_string(send_counts[me]) + " elements to itself but receives " +
             std::to_string(receive_counts[me]));
  }
  /// Of a shift on `rank`.
  void require_partners(int rank, int to, int from) const {
    require_rank("destination", to);
    require_rank("source", from);
    if ((to == rank) != (from == rank))
      refuse("a rank that sends to itself receives from itself; to " + std::to_string(to) +
             ", from " + std::to_string(from));
  }
  /// NCCL reads `in` while it writes `out`.
  void require_apart(void const* in, std::size_t in_bytes, void const* out,
                     std::size_t out_bytes) const {
    if (in_bytes == 0 || out_bytes == 0) return;
    auto const* const a = static_cast<char const*>(in);
    auto const* const b = static_cast<char const*>(out);
    std::less<char const*> const before;
    if (before(a, b + out_bytes) && before(b, a + in_bytes))
      refuse("operand and result overlap in the device's memory");
  }
};

}  // namespace dtm::comm::detail
