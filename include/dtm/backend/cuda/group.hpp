#pragma once
// How ranks exchange what lies in their GPUs: by NCCL, or staged through the host by MPI where
// ranks share a GPU. Chosen once, for all groups of a context; the same calls, checks and ledger.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dtm/backend/cuda/device.hpp"
#include "dtm/comm/nccl_groups.hpp"

namespace dtm::gpu {

/// An operation of either transport that has begun.
class [[nodiscard]] cuda_pending {
 public:
  cuda_pending(comm::nccl_pending begun) : begun_(std::move(begun)) {}
  cuda_pending(comm::pending begun) : begun_(std::move(begun)) {}

  /// By NCCL: the compute stream waits, and the host goes on. By MPI: the host waits.
  void wait() {
    std::visit([](auto& begun) { begun.wait(); }, begun_);
  }

 private:
  std::variant<comm::nccl_pending, comm::pending> begun_;
};

/// The ranks along some axes; models comm/communicator.hpp.
class cuda_group {
  template <class F>
  auto either(F&& f) const {
    return direct_ != nullptr ? f(std::as_const(*direct_)) : f(std::as_const(*staged_));
  }
  template <class F>
  cuda_pending begin(F&& f) {
    if (direct_ != nullptr) return f(*direct_);
    return f(*staged_);
  }

 public:
  explicit cuda_group(comm::nccl_group& direct) : direct_(&direct) {}
  explicit cuda_group(std::unique_ptr<comm::group> staged) : staged_(std::move(staged)) {}

  int rank() const {
    return either([](auto& g) { return g.rank(); });
  }
  int size() const {
    return either([](auto& g) { return g.size(); });
  }
  std::string_view name() const {
    return either([](auto& g) { return g.name(); });
  }
  comm::check_level level() const {
    return either([](auto& g) { return g.level(); });
  }
  std::span<int const> members() const {
    return either([](auto& g) { return g.members(); });
  }

  template <class T>
  cuda_pending all_reduce(T const* in, T* out, std::int64_t count, comm::reduction how,
                          comm::call who) {
    return begin([&](auto& g) { return g.all_reduce(in, out, count, how, who); });
  }
  template <class T>
  cuda_pending all_gather(T const* in, T* out, std::int64_t count, comm::call who) {
    return begin([&](auto& g) { return g.all_gather(in, out, count, who); });
  }
  template <class T>
  cuda_pending reduce_scatter(T const* in, T* out, std::int64_t count, comm::reduction how,
                              comm::call who) {
    return begin([&](auto& g) { return g.reduce_scatter(in, out, count, how, who); });
  }
  template <class T>
  cuda_pending all_to_all(T const* in, std::span<std::int64_t const> send_counts, T* out,
                          std::span<std::int64_t const> receive_counts, comm::call who) {
    return begin([&](auto& g) { return g.all_to_all(in, send_counts, out, receive_counts, who); });
  }
  template <class T>
  cuda_pending broadcast(T* data, std::int64_t count, int root, comm::call who) {
    return begin([&](auto& g) { return g.broadcast(data, count, root, who); });
  }
  template <class T>
  cuda_pending shift(T const* in, T* out, std::int64_t count, int to, int from, comm::call who) {
    return begin([&](auto& g) { return g.shift(in, out, count, to, from, who); });
  }
  cuda_pending barrier(comm::call who) {
    return begin([&](auto& g) { return g.barrier(who); });
  }

 private:
  comm::nccl_group* direct_ = nullptr;
  std::unique_ptr<comm::group> staged_;
};

/// All groups of a context. They are destroyed together, before the compute stream.
class cuda_groups {
 public:
  /// Collective over the world. `storage` is the memory of the compute stream.
  cuda_groups(comm::world& ranks, comm::mesh_groups& groups, memory& storage, cudaStream_t compute,
              transport how, comm::call_site where = comm::call_site::current())
      : ranks_(ranks), compute_(compute) {
    if (how == transport::nccl) nccl_.emplace(ranks, groups, storage, compute, where);
    for (unsigned mask = 0; mask < 1u << groups.axes(); ++mask)
      groups_.push_back(nccl_ ? std::make_unique<cuda_group>(nccl_->along(mask))
                              : std::make_unique<cuda_group>(groups.along(mask, storage)));
  }

  cuda_group& along(unsigned axis_mask) { return *groups_.at(axis_mask); }

  /// The library's wait, which also hears of an error of NCCL; what it throws has ended what was
  /// under way between the ranks.
  template <class Complete>
  void wait_until(Complete&& complete, comm::signature const& what) {
    if (nccl_)
      nccl_->stream().wait_behind(complete, what);
    else
      comm::wait_until(ranks_.ranks(), complete, ranks_.settings().deadline_seconds, what);
  }

  /// Waits until the device has done everything it was given.
  void finish(comm::call who = {"finish"}) {
    if (nccl_) return nccl_->stream().finish(who);
    wait_until(
        [&] {
          cudaError_t const status = cudaStreamQuery(compute_);
          if (status == cudaErrorNotReady) return forget(status), false;
          return check(status, "cudaStreamQuery"), true;
        },
        comm::make_signature(who, "device", 0, "", 0));
  }

 private:
  comm::world& ranks_;
  cudaStream_t compute_;
  std::optional<comm::nccl_groups> nccl_;
  std::vector<std::unique_ptr<cuda_group>> groups_;
};

}  // namespace dtm::gpu
