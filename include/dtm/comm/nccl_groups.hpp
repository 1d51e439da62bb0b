#pragma once
// The groups of a mesh whose operands lie in the memory of GPUs: one for every set of axes, one
// communicator for every distinct set of ranks, as in mesh_groups.hpp. They are made once, together
// and in the order of the masks; no group is made later. The current device of the thread is the
// rank's.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mesh_groups.hpp"
#include "nccl_group.hpp"

namespace dtm::comm {

class nccl_groups {
 public:
  /// Collective over the world. `storage` is the memory of the compute stream. The error of one
  /// rank is everyone's.
  nccl_groups(world& ranks, mesh_groups& groups, memory& storage, cudaStream_t compute,
              call_site where = call_site::current()) try
      : stream_(ranks, compute), token_(storage) {
    ranks.meet({"NCCL groups", "", 0, where});
    std::vector<made> known;
    std::vector<std::size_t> of_mask;
    for (unsigned mask = 0; mask < 1u << groups.axes(); ++mask) {
      auto const members = groups.along(mask).members();
      auto const at = std::find_if(known.begin(), known.end(), [&](made const& m) {
        return std::ranges::equal(m.ranks->members(), members);
      });
      of_mask.push_back(std::size_t(at - known.begin()));
      if (at == known.end()) known.push_back({groups.along(mask).ranks(), mask});
    }
    for (auto& m : known)
      if (m.ranks->size() > 1)
        m.communicator =
            &stream_.connect(m.ranks, std::string(groups.along(m.first_mask).name()), where);
    for (unsigned mask = 0; mask < of_mask.size(); ++mask) {
      auto const& m = known[of_mask[mask]];
      groups_.push_back(std::make_unique<nccl_group>(stream_, m.communicator, m.ranks,
                                                     std::string(groups.along(mask).name()),
                                                     groups.ledger(), storage, token_.bytes));
    }
  } catch (...) {
    ranks.ranks().declare(current_failure(ranks.rank()));
    throw;
  }

  nccl_group& along(unsigned axis_mask) { return *groups_.at(axis_mask); }
  nccl_stream& stream() { return stream_; }

 private:
  struct made {
    std::shared_ptr<channel> ranks;
    unsigned first_mask;
    nccl_communicator* communicator = nullptr;
  };

  /// Four bytes for barriers, which are on nobody's account.
  struct token {
    explicit token(memory& storage)
        : storage(storage), bytes(storage.allocate(storage.owner, sizeof(std::int32_t))) {}
    token(token const&) = delete;
    token& operator=(token const&) = delete;
    ~token() { storage.release(storage.owner, bytes, sizeof(std::int32_t)); }
    memory& storage;
    void* bytes;
  };

  nccl_stream stream_;
  token token_;
  std::vector<std::unique_ptr<nccl_group>> groups_;
};

}  // namespace dtm::comm
