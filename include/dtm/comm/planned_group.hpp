#pragma once
// The ranks along some axes of a planned mesh. Models comm/communicator.hpp: the arguments are checked,
// the ledger is written and copies of operands and results are on the account of communication as the
// planned transport has them; nothing is sent, and operands are not touched.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../core/device.hpp"
#include "buffer.hpp"
#include "checks.hpp"
#include "ledger.hpp"
#include "mesh_shape.hpp"
#include "opened_memory.hpp"
#include "planned_world.hpp"
#include "sums.hpp"

namespace dtm::comm {

/// What a transport does with operands that a plan can see.
struct planned_transport {
  memory* buffers = nullptr;     // from where copies come; null: on no account
  bool refuses_overlap = false;  // reads the operand while it writes the result, as NCCL does
  int ranks_per_node = 0;        // that read each other's memory (shared_group.hpp); 0: none do

  bool shares(std::vector<int> const& members) const {
    return members.size() > 1 && ranks_per_node > 0 &&
           members.front() / ranks_per_node == members.back() / ranks_per_node;
  }
};

/// Must be waited for, as every operation.
class [[nodiscard]] planned_pending {
 public:
  planned_pending() = default;
  planned_pending(signature const& what, buffer sent, buffer received)
      : what_(std::make_unique<signature>(what)),
        sent_(std::move(sent)),
        received_(std::move(received)) {}
  planned_pending(planned_pending&&) noexcept = default;
  planned_pending& operator=(planned_pending&& other) noexcept {
    if (this != &other) {
      end();
      what_ = std::move(other.what_);
      sent_ = std::move(other.sent_);
      received_ = std::move(other.received_);
    }
    return *this;
  }
  ~planned_pending() { end(); }

  void wait() {
    what_ = nullptr;
    sent_ = {};
    received_ = {};
  }

 private:
  void end() noexcept {
    if (what_ == nullptr) return;
    if (std::uncaught_exceptions() == exceptions_)
      std::fprintf(stderr, "dtm: %s\n  was never waited for\n", describe(*what_).c_str());
    wait();
  }

  std::unique_ptr<signature> what_;
  buffer sent_, received_;
  int exceptions_ = std::uncaught_exceptions();
};

class planned_group {
 public:
  planned_group(planned_world& world, planned_world::ranks_of_group members, int rank,
                std::string name, ledger& book)
      : world_(world),
        members_(std::move(members)),
        rank_(rank),
        name_(std::move(name)),
        book_(book) {}
  planned_group(planned_group const&) = delete;
  planned_group& operator=(planned_group const&) = delete;

  void plan_as(planned_transport how) { transport_ = how; }

  int rank() const { return rank_; }
  int size() const { return int(members_->size()); }
  std::string_view name() const { return name_; }
  check_level level() const { return world_.level(); }
  std::span<int const> members() const { return *members_; }

  template <class T>
  planned_pending all_reduce(T const* in, T* out, std::int64_t count, reduction how, call who) {
    refuse(who).require_count(count);
    if (in != out) require_apart<T>(who, in, count, out, count);
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), count, comm::name(how));
    note<T>(who, what, count, mpi::checked_product(count, 2) * (size() - 1) / size());
    std::int64_t const slice = (count + size() - 1) / size();
    if (!shares_memory()) return begin<T>(what, 0, slice * size());
    return begin<T>(what, count, bytes<T>(count) > detail::worth_sharing ? slice : 0);
  }

  template <class T>
  planned_pending all_gather(T const* in, T* out, std::int64_t count, call who) {
    refuse(who).require_count(count);
    std::int64_t const total = mpi::checked_product(count, size());
    require_apart<T>(who, in, count, out, total);
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), count);
    note<T>(who, what, count, count * (size() - 1));
    return shares_memory() ? begin<T>(what, count, 0) : begin<T>(what, 0, total);
  }

  template <class T>
  planned_pending reduce_scatter(T const* in, T* out, std::int64_t count, reduction how, call who) {
    refuse(who).require_count(count);
    std::int64_t const total = mpi::checked_product(count, size());
    require_apart<T>(who, in, total, out, count);
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), count, comm::name(how));
    note<T>(who, what, count, count * (size() - 1));
    return begin<T>(what, total, 0);
  }

  template <class T>
  planned_pending all_to_all(T const* in, std::span<std::int64_t const> send_counts, T* out,
                             std::span<std::int64_t const> receive_counts, call who) {
    refuse(who).require_counts(rank(), send_counts, receive_counts);
    std::int64_t const sent = mpi::packed_offsets(send_counts).back(),
                       received = mpi::packed_offsets(receive_counts).back();
    if (size() > 1 || in != out) require_apart<T>(who, in, sent, out, received);
    auto const what = note_exchange<T>(who, send_counts, receive_counts);
    if (!shares_memory()) return begin<T>(what, sent, received);
    buffer operand = fresh(bytes<std::int64_t>(size() + 1) + bytes<T>(sent));  // offsets first
    return {what, std::move(operand), buffer()};
  }

  template <class T>
  planned_pending broadcast(T*, std::int64_t count, int root, call who) {
    refuse(who).require_rank("root", root);
    refuse(who).require_count(count);
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), count, "", root);
    note<T>(who, what, count,
            count / size() * (size() - 1) + count % size() * (size() - 1) / size());
    if (!shares_memory()) return begin<T>(what, 0, count);
    return begin<T>(what, rank() == root ? count : 0, 0);
  }

  template <class T>
  planned_pending shift(T const* in, T* out, std::int64_t count, int to, int from, call who) {
    refuse(who).require_partners(rank(), to, from);
    refuse(who).require_count(count);
    require_apart<T>(who, in, count, out, count);
    bool const stays = to == rank();
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), count);
    planned_operation fitting;
    fitting.to = to;
    fitting.from = from;
    note<T>(who, what, count, stays ? 0 : count, stays ? count : 0, std::move(fitting));
    if (stays) return {};
    return begin<T>(what, count, shares_memory() ? 0 : count);
  }

  // ---- where shares_memory(): nothing is copied
  bool shares_memory() const { return transport_.shares(*members_); }
  template <class T, class Read>
  planned_pending all_to_all_in_place(T const*, std::span<std::int64_t const> send_counts,
                                      std::span<std::int64_t const> receive_counts, call who, bool,
                                      Read const&) {
    refuse(who).require_counts(rank(), send_counts, receive_counts);
    return {note_exchange<T>(who, send_counts, receive_counts), buffer(), buffer()};
  }
  template <class T, class Read>
  planned_pending all_gather_in_place(T const*, std::int64_t count, call who, Read const&) {
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), count);
    note<T>(who, what, count, count * (size() - 1));
    return begin<T>(what, 0, 0);
  }
  template <class T, class Read>
  planned_pending reduce_scatter_in_place(T const*, std::int64_t count, call who, Read const&) {
    auto const what =
        make_signature(who, name_, 0, mpi::name_of<T>(), count, comm::name(reduction::sum));
    note<T>(who, what, count, count * (size() - 1));
    return begin<T>(what, 0, 0);
  }

  /// Nothing lies in the memory of a peer; an address of this rank's stands for one.
  class opened {
   public:
    explicit opened(void* mine) : mine_(mine) {}
    void* address(int) const { return mine_; }
    void close() {}

   private:
    void* mine_;
  };
  template <class T>
  opened open_to_peers(T const* mine, std::span<std::int64_t const> send_counts,
                       std::span<std::int64_t const> receive_counts, call who) {
    refuse(who).require_counts(rank(), send_counts, receive_counts);
    note_exchange<T>(who, send_counts, receive_counts);
    return opened(const_cast<T*>(mine));
  }

  planned_pending barrier(call who) {
    auto const what = make_signature(who, name_, 0, "", 0);
    book_.entries.push_back(
        {who.operation, name_, who.tensor, 0, 0, 0, 0, who.where.file, who.where.line});
    world_.note(what, members_);
    return begin<char>(what, 0, 0);
  }

 private:
  detail::refusal refuse(call const& who) const { return {who, name_, size()}; }
  template <class T>
  static std::size_t bytes(std::int64_t count) {
    return std::size_t(mpi::checked_product(count, std::int64_t(sizeof(T)), "bytes of"));
  }
  template <class T>
  void require_apart(call const& who, T const* in, std::int64_t in_count, T const* out,
                     std::int64_t out_count) const {
    if (transport_.refuses_overlap)
      refuse(who).require_apart(in, bytes<T>(in_count), out, bytes<T>(out_count));
  }
  template <class T>
  void note(call const& who, signature const& what, std::int64_t count, std::int64_t sent,
            std::int64_t self = 0, planned_operation fitting = {}) {
    book_.entries.push_back({who.operation, name_, who.tensor, count, std::int64_t(sizeof(T)), sent,
                             self, who.where.file, who.where.line});
    world_.note(what, members_, std::move(fitting));
  }
  template <class T>
  signature note_exchange(call const& who, std::span<std::int64_t const> send_counts,
                          std::span<std::int64_t const> receive_counts) {
    auto const what = make_signature(who, name_, 0, mpi::name_of<T>(), -1);
    planned_operation fitting;
    fitting.send_counts.assign(send_counts.begin(), send_counts.end());
    fitting.receive_counts.assign(receive_counts.begin(), receive_counts.end());
    std::int64_t const sent = mpi::packed_offsets(send_counts).back(),
                       own = send_counts[std::size_t(rank())];
    note<T>(who, what, sent, sent - own, own, std::move(fitting));
    return what;
  }
  buffer fresh(std::size_t bytes) const {
    return transport_.buffers != nullptr ? buffer(transport_.buffers, bytes) : buffer();
  }
  /// With copies of so many elements until the wait; a group of one makes none.
  template <class T>
  planned_pending begin(signature const& what, std::int64_t sent, std::int64_t received) {
    if (size() == 1) return {};
    buffer operand = fresh(bytes<T>(sent));
    return {what, std::move(operand), fresh(bytes<T>(received))};
  }

  planned_world& world_;
  planned_world::ranks_of_group members_;
  int rank_;
  std::string name_;
  ledger& book_;
  planned_transport transport_;
};

template <class Device>
struct opened_by<planned<Device>> {
  using type = planned_group::opened;
};

/// The groups of a planned mesh: mesh_groups of a world without peers.
class planned_mesh_groups {
 public:
  /// Throws mesh_error where the product of the sizes is not the world's size.
  planned_mesh_groups(planned_world& ranks, std::vector<std::string> names, std::vector<int> sizes,
                      call_site where = call_site::current())
      : names_(std::move(names)),
        sizes_(std::move(sizes)),
        ledger_(std::make_unique<comm::ledger>()) {
    auto const text = detail::mesh_text(names_, sizes_);
    auto const layout = std::uint64_t(hash_bytes(text.data(), text.size()));
    ranks.meet({"mesh", "", layout, where});
    detail::refuse_bad_mesh(names_, sizes_, ranks.size());
    coordinates_ = detail::mesh_coordinates(sizes_, ranks.rank());
    for (unsigned mask = 0; mask < 1u << sizes_.size(); ++mask) {
      auto members = std::make_shared<std::vector<int> const>(
          detail::mesh_members(sizes_, coordinates_, mask));
      int const rank =
          int(std::find(members->begin(), members->end(), ranks.rank()) - members->begin());
      groups_.push_back(std::make_unique<planned_group>(ranks, std::move(members), rank,
                                                        detail::mesh_axes(names_, mask), *ledger_));
    }
  }

  int axes() const { return int(sizes_.size()); }
  std::string const& name(int axis) const { return names_.at(std::size_t(axis)); }
  int size(int axis) const { return sizes_.at(std::size_t(axis)); }
  int coordinate(int axis) const { return coordinates_.at(std::size_t(axis)); }
  planned_group& along(unsigned axis_mask) {
    if (axis_mask >= groups_.size())
      throw argument_error("a mesh of " + std::to_string(axes()) + " axes has no axis mask " +
                           std::to_string(axis_mask));
    return *groups_[axis_mask];
  }
  planned_group& along_all() { return along((1u << sizes_.size()) - 1u); }
  void plan_as(planned_transport how) {
    for (auto& each : groups_) each->plan_as(how);
  }

  comm::ledger& ledger() { return *ledger_; }
  comm::ledger const& ledger() const { return *ledger_; }

 private:
  std::vector<std::string> names_;
  std::vector<int> sizes_, coordinates_;
  std::unique_ptr<comm::ledger> ledger_;
  std::vector<std::unique_ptr<planned_group>> groups_;
};

}  // namespace dtm::comm
