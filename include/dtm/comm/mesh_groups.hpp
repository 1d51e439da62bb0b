#pragma once
// The groups of a mesh: one for every set of axes, made once and collectively. Ranks are numbered
// row-major over the axes, the last axis fastest.
//
// The constructor first agrees, with the library's own wait, on names and sizes; a disagreement is
// mesh_error on all ranks and an absent rank is a deadline. Only then, when every rank is known to
// be here, MPI_Comm_create_group runs, the one MPI call of the library that may block: MPI has no
// non-blocking form of it.

#include <mpi.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dtm/comm/mesh_shape.hpp>

#include "group.hpp"
#include "node.hpp"
#include "world.hpp"

namespace dtm::comm {

class mesh_groups {
 public:
  /// Collective over the world. Throws mesh_error on all ranks when they disagree or the product is
  /// not the world's size.
  mesh_groups(world& ranks, std::vector<std::string> names, std::vector<int> sizes,
              call_site where = call_site::current())
      : names_(std::move(names)),
        sizes_(std::move(sizes)),
        ledger_(std::make_unique<comm::ledger>()) {
    agree_on_shape(ranks, where);
    coordinates_ = detail::mesh_coordinates(sizes_, ranks.rank());
    make_groups(ranks);
  }

  int axes() const { return int(sizes_.size()); }
  std::string const& name(int axis) const { return names_.at(std::size_t(axis)); }
  int size(int axis) const { return sizes_.at(std::size_t(axis)); }
  int coordinate(int axis) const { return coordinates_.at(std::size_t(axis)); }

  /// The ranks that differ from this one only in the axes of the mask (bit a: axis a), in row-major
  /// order.
  group& along(unsigned axis_mask) {
    if (axis_mask >= groups_.size())
      throw argument_error("a mesh of " + std::to_string(axes()) + " axes has no axis mask " +
                           std::to_string(axis_mask));
    return *groups_[axis_mask];
  }

  group& along_all() { return along((1u << sizes_.size()) - 1u); }
  /// The same ranks, with operands in a device's memory.
  std::unique_ptr<group> along(unsigned axis_mask, memory& storage) {
    return along(axis_mask).with_operands_in(storage);
  }

  /// Where all groups take the copies of operands and results from.
  void take_buffers_from(memory& storage) {
    for (auto& each : groups_) each->take_buffers_from(storage);
  }

  /// Groups of two ranks or more that the node reaches read each other's memory from now on. The same
  /// on all ranks.
  void share(std::shared_ptr<node> const& place) {
    std::vector<std::pair<channel*, std::shared_ptr<shared_channel>>> made;
    for (unsigned mask = 0; mask < groups_.size(); ++mask) {
      auto& each = *groups_[mask];
      if (each.size() == 1 || !place->reaches(each.members())) continue;
      auto at = std::find_if(made.begin(), made.end(),
                             [&](auto const& m) { return m.first == each.ranks().get(); });
      if (at == made.end())
        at = made.emplace(
            at, each.ranks().get(),
            std::make_shared<shared_channel>(place, each.members(), each.rank(), int(mask)));
      each.share(at->second);
    }
  }

  comm::ledger& ledger() { return *ledger_; }
  comm::ledger const& ledger() const { return *ledger_; }

 private:
  std::string shape() const { return detail::mesh_text(names_, sizes_); }

  /// Always compared, at every check level: ranks with other meshes would make other communicators.
  void agree_on_shape(world& ranks, call_site where) const {
    call const who{"mesh", "", 0, where};
    auto& all = *ranks.all();
    auto const what = all.open(who, "world", "", 0);
    std::string const mine = shape();
    bool const same =
        ranks.size() == 1 || all.same_everywhere(hash_bytes(mine.data(), mine.size()), what);
    if (!same) {
      std::vector<char> text(256, '\0');
      mine.copy(text.data(), text.size() - 1);
      auto const texts = all.gather<char>(text, what);
      std::string table = "the ranks want different meshes, at " + std::string(where.file) + ":" +
                          std::to_string(where.line);
      for (int r = 0; r < ranks.size(); ++r)
        table +=
            "\n  rank " + std::to_string(r) + ": " + (texts.data() + std::size_t(r) * text.size());
      all.fail(failure_kind::mesh, table);
    }
    all.close(what);
    detail::refuse_bad_mesh(names_, sizes_, ranks.size());
  }

  std::vector<int> members(unsigned mask) const {
    return detail::mesh_members(sizes_, coordinates_, mask);
  }
  std::string name_of(unsigned mask) const { return detail::mesh_axes(names_, mask); }

  /// In the order of the mask, which is the same everywhere. Masks that differ only in axes of size
  /// one share a channel.
  void make_groups(world& ranks) {
    std::vector<std::pair<std::vector<int>, std::shared_ptr<channel>>> made;
    if (ranks.size() > 1) made.push_back({members((1u << sizes_.size()) - 1), ranks.all()});
    for (unsigned mask = 0; mask < 1u << sizes_.size(); ++mask) {
      auto const wanted = members(mask);
      auto at = std::size_t(
          std::find_if(made.begin(), made.end(), [&](auto const& m) { return m.first == wanted; }) -
          made.begin());
      if (at == made.size()) made.push_back({wanted, make_channel(ranks, wanted)});
      groups_.push_back(std::make_unique<group>(made[at].second, name_of(mask), *ledger_));
    }
  }

  static std::shared_ptr<channel> make_channel(world& ranks, std::vector<int> const& members) {
    int const rank = int(std::find(members.begin(), members.end(), ranks.rank()) - members.begin());
    MPI_Comm comm = MPI_COMM_NULL;
    if (members.size() > 1) {
      MPI_Group everyone, these;
      MPI_Comm_group(ranks.native(), &everyone);
      MPI_Group_incl(everyone, int(members.size()), members.data(), &these);
      int const code = MPI_Comm_create_group(ranks.native(), these, 0, &comm);
      MPI_Group_free(&these);
      MPI_Group_free(&everyone);
      mpi::check(code, "making the groups of a mesh");
    }
    return std::make_shared<channel>(ranks.ranks(), ranks.settings(), comm, true, members, rank);
  }

  std::vector<std::string> names_;
  std::vector<int> sizes_, coordinates_;
  std::unique_ptr<comm::ledger> ledger_;
  std::vector<std::unique_ptr<group>> groups_;
};

}  // namespace dtm::comm
