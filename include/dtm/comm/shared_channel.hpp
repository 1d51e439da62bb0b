#pragma once
// What ranks of one node say to each other in control words: "this is mine to read, for that
// operation", and "I have read it". One channel of shared memory a group of ranks, beside its channel
// of MPI.
//
// A rank posts (release) after its data is in place, and a reader that sees the post (acquire) sees the
// data. The word that is posted names step and kind of the operation, so that ranks which do different
// things wait for each other until the deadline, as with messages. What was posted may change when all
// have read. A rank that leaves an operation by an exception withdraws what it posted before its memory
// is used again; a reader looks again at the post when it has read, and where it is gone it waits for
// the notice of the failure or the deadline.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "node.hpp"

namespace dtm::comm {

class shared_channel {
 public:
  static constexpr std::uint64_t depth = detail::shared_words::depth;

  /// `members` in the numbering of the world, of which this is number `rank`; `index` is the same on
  /// all of them and no other channel's among them.
  shared_channel(std::shared_ptr<node> place, std::span<int const> members, int rank, int index)
      : place_(std::move(place)), members_(members.begin(), members.end()), rank_(rank) {
    for (int member : members_) {
      words_.push_back(&place_->words(member, index));
      bells_.push_back(&place_->bell_of(member));
    }
  }
  shared_channel(shared_channel const&) = delete;
  shared_channel& operator=(shared_channel const&) = delete;

  int rank() const { return rank_; }
  int size() const { return int(members_.size()); }
  int patience() const { return place_->patience(); }

  /// A step that this rank has begun, of the same number and kind on all ranks.
  struct step {
    std::uint64_t number, word;
  };
  step next(std::uint64_t kind) {
    std::uint64_t const number = ++steps_;
    std::uint64_t const both[] = {number, kind};
    return {number, std::uint64_t(hash_bytes(both, sizeof both)) | 1};
  }

  /// Lends `data`, which `readers` ranks will read. What was lent `depth` steps ago is_read.
  void post(step const& s, void const* data, int readers) {
    auto& slot = slot_of(rank_, s);
    auto const at = data != nullptr ? place_->locate(data) : segment_place{};
    slot.descriptor = at.descriptor;
    slot.bytes = at.bytes;
    slot.offset = at.offset;
    auto& mine = lent_[s.number % depth];
    if (std::exchange(mine.is_withdrawn, false))
      mine.expected = slot.read.load(std::memory_order_acquire);
    mine.expected += std::uint64_t(readers);
    slot.posted.store(s.word, std::memory_order_release);
    ring();
  }
  /// Nobody who has not finished reading will take it for read.
  void withdraw(step const& s) noexcept {
    slot_of(rank_, s).posted.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    lent_[s.number % depth].is_withdrawn = true;
  }

  bool has_posted(int peer, step const& s) const {
    return slot_of(peer, s).posted.load(std::memory_order_acquire) == s.word;
  }
  /// Of what was posted; null where nothing was lent.
  std::byte const* address(int peer, step const& s) {
    auto const& slot = slot_of(peer, s);
    return slot.descriptor < 0 ? nullptr
                               : place_->address(members_[std::size_t(peer)], slot.descriptor,
                                                 slot.bytes, slot.offset);
  }
  /// After reading: false where it was withdrawn meanwhile.
  bool acknowledge(int peer, step const& s) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!has_posted(peer, s)) return false;
    slot_of(peer, s).read.fetch_add(1, std::memory_order_seq_cst);
    bells_[std::size_t(peer)]->ring_if_asleep();
    return true;
  }
  /// Whether what this rank has lent, in this step or `depth` steps ago, is its own again.
  bool is_read(step const& s) const {
    auto const& mine = lent_[s.number % depth];
    return mine.is_withdrawn ||
           slot_of(rank_, s).read.load(std::memory_order_acquire) == mine.expected;
  }

  // ---- barriers: numbers that only grow, so that nobody answers
  void arrive(std::uint64_t sequence) {
    words_[std::size_t(rank_)]->arrived.store(sequence, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (all_have_arrived(sequence)) ring();  // the last one: nobody wakes for less
  }
  bool all_have_arrived(std::uint64_t sequence) const {
    for (auto const* words : words_)
      if (words->arrived.load(std::memory_order_acquire) < sequence) return false;
    return true;
  }

  /// Until a peer rings, or for a moment.
  template <class IsNeeded>
  void sleep(IsNeeded&& is_needed) {
    bells_[std::size_t(rank_)]->sleep(std::forward<IsNeeded>(is_needed));
  }

 private:
  void ring() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (auto* bell : bells_) bell->ring_if_asleep();
  }
  detail::shared_slot& slot_of(int member, step const& s) const {
    return words_[std::size_t(member)]->slots[s.number % depth];
  }

  std::shared_ptr<node> place_;
  std::vector<int> members_;
  int rank_;
  std::vector<detail::shared_words*> words_;
  std::vector<detail::bell*> bells_;
  std::uint64_t steps_ = 0;
  /// What this rank knows of its slots: how often they will have been read.
  struct {
    std::uint64_t expected = 0;
    bool is_withdrawn = false;
  } lent_[depth];
};

}  // namespace dtm::comm
