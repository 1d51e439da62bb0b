#pragma once
// Memory of every rank of a group that is open to all of them for a while: each fetches what it needs
// from the others, or brings it to them, and nothing is packed or copied between.

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "shared_group.hpp"

namespace dtm::comm {

/// Open from its making, which waits for all ranks, to close(). A rank that leaves before closes nothing:
/// the others wait for the notice of its failure.
class group::opened {
 public:
  opened(std::shared_ptr<shared_channel> ranks, channel& checks, shared_channel::step step,
         signature const& what, void const* mine)
      : ranks_(std::move(ranks)), checks_(&checks), step_(step), what_(what) {
    ranks_->post(step_, mine, ranks_->size() - 1);
    try {
      wait([this] {
        for (int rank = 0; rank < ranks_->size(); ++rank)
          if (rank != ranks_->rank() && !ranks_->has_posted(rank, step_)) return false;
        return true;
      });
      for (int rank = 0; rank < ranks_->size(); ++rank)
        addresses_.push_back(
            const_cast<void*>(rank == ranks_->rank() ? mine : ranks_->address(rank, step_)));
    } catch (...) {
      ranks_->withdraw(step_);
      throw;
    }
  }
  opened(opened const&) = delete;
  opened& operator=(opened const&) = delete;
  ~opened() {
    if (!is_closed_) ranks_->withdraw(step_);
  }

  void* address(int rank) const { return addresses_[std::size_t(rank)]; }

  /// This rank is done with the memory of the others; returns when they are with this rank's.
  void close() {
    bool all = true;
    for (int rank = 0; rank < ranks_->size(); ++rank)
      if (rank != ranks_->rank()) all &= ranks_->acknowledge(rank, step_);
    wait([this, all] { return all && ranks_->is_read(step_); });
    is_closed_ = true;
    checks_->close(what_);
  }

 private:
  void wait(std::function<bool()> complete) {
    checks_->wait(*detail::background_of(*ranks_, std::move(complete)), what_);
  }

  std::shared_ptr<shared_channel> ranks_;
  channel* checks_;
  shared_channel::step step_;
  signature what_;
  std::vector<void*> addresses_;
  bool is_closed_ = false;
};

template <class T>
group::opened group::open_to_peers(T const* mine, std::span<std::int64_t const> send_counts,
                                   std::span<std::int64_t const> receive_counts, call who) {
  auto const op = open_all_to_all(send_counts, receive_counts, mpi::datatype_of<T>(), who);
  return {shared_, *channel_, detail::next_step(*shared_, *op), op->what, mine};
}

/// What open_to_peers of a device's groups gives.
template <class Device>
struct opened_by {
  using type = group::opened;
};

}  // namespace dtm::comm
