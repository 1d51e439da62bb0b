#pragma once
// The collectives that a contract lists, as the ledger spells them, and the comparison with what
// ran. One entry of the contract is one entry of the ledger, in the same order; ring_shift stands
// for the steps of a ring and by_panels for those of a tensor's panels, one or more, wherever they fall.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "dtm/backend/context.hpp"
#include "dtm/comm/ledger.hpp"
#include "dtm/contract/contract.hpp"

namespace dtm::testing {

struct expected_collective {
  std::string operation, axes, tensor;
  bool repeats = false;
};

namespace detail {

template <class Mesh>
std::string axes_text(unsigned mask) {
  std::string text;
  for (int axis = 0; axis < Mesh::rank; ++axis)
    if (mask >> axis & 1u) text += (text.empty() ? "" : "*") + std::string(Mesh::axis_name(axis));
  return text;
}

template <class Mesh, class... Axis>
std::string axes_of() {
  return axes_text<Mesh>(dtm::detail::axis_mask<Mesh, Axis...>);
}

template <class Collective>
struct ledger_entry;
template <class... Axis>
struct ledger_entry<all_reduce<Axis...>> {
  static constexpr char const* operation = "all_reduce";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, Axis...>();
  }
};
template <class Axis, int D>
struct ledger_entry<reduce_scatter<Axis, D>> {
  static constexpr char const* operation = "reduce_scatter";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, Axis>();
  }
};
template <class Axis>
struct ledger_entry<all_gather<Axis>> {
  static constexpr char const* operation = "all_gather";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, Axis>();
  }
};
template <class... Move>
struct ledger_entry<all_to_all<Move...>> {
  static constexpr char const* operation = "all_to_all";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, typename Move::axis...>();
  }
};
template <class Axis, int D>
struct ledger_entry<all_slice<Axis, D>> {
  static constexpr char const* operation = "";  // no message, no entry
  template <class Mesh>
  static std::string axes() {
    return {};
  }
};
template <class A, class B>
struct ledger_entry<transpose<A, B>> {
  static constexpr char const* operation = "transpose";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, A, B>();
  }
};
template <class Axis>
struct ledger_entry<ring_shift<Axis>> {
  static constexpr char const* operation = "ring_shift";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, Axis>();
  }
};
template <class Axis>
struct ledger_entry<broadcast<Axis>> {
  static constexpr char const* operation = "broadcast";
  template <class Mesh>
  static std::string axes() {
    return axes_of<Mesh, Axis>();
  }
};

template <class Collective>
struct ledger_entry<by_panels<Collective>> : ledger_entry<Collective> {};

template <class Collective>
inline constexpr bool repeats = false;
template <class Axis>
inline constexpr bool repeats<ring_shift<Axis>> = true;
template <class Collective>
inline constexpr bool repeats<by_panels<Collective>> = true;

template <class Mesh, class Collectives>
struct list_expected;
template <class Mesh, class... Name, class... Collective>
struct list_expected<Mesh, collectives<on_tensor<Name, Collective>...>> {
  static std::vector<expected_collective> list() {
    std::vector<expected_collective> all{{ledger_entry<Collective>::operation,
                                          ledger_entry<Collective>::template axes<Mesh>(),
                                          Name::name, repeats<Collective>}...};
    std::erase_if(all, [](expected_collective const& e) { return e.operation.empty(); });
    return all;
  }
};

inline std::string describe(std::string const& operation, std::string const& axes,
                            std::string const& tensor) {
  return operation + " of " + tensor + " on " + axes;
}

}  // namespace detail

/// What a list of a contract should leave in the ledger.
template <class Mesh, class Collectives>
std::vector<expected_collective> expected_collectives() {
  return detail::list_expected<Mesh, Collectives>::list();
}

/// One sentence for everything that ran and is not listed, or is listed and did not run.
inline std::vector<std::string> compare_collectives(
    std::vector<expected_collective> const& expected, std::vector<comm::ledger::entry> const& ran) {
  std::vector<std::string> faults;
  using entry = std::tuple<std::string, std::string, std::string>;
  auto const ring = [&](entry const& e) {
    return std::any_of(expected.begin(), expected.end(), [&](expected_collective const& x) {
      return x.repeats && entry(x.operation, x.axes, x.tensor) == e;
    });
  };
  std::vector<entry> wanted, got;
  for (auto const& x : expected) {
    if (!x.repeats)
      wanted.emplace_back(x.operation, x.axes, x.tensor);
    else if (std::none_of(ran.begin(), ran.end(), [&](auto const& e) {
               return entry(e.operation, e.axes, e.tensor) == entry(x.operation, x.axes, x.tensor);
             }))
      faults.push_back("the contract lists " + detail::describe(x.operation, x.axes, x.tensor) +
                       ", which did not run");
  }
  for (auto const& e : ran)
    if (!ring({e.operation, e.axes, e.tensor})) got.emplace_back(e.operation, e.axes, e.tensor);
  if (wanted == got) return faults;
  auto const count = [](std::vector<entry> const& list, entry const& e) {
    return std::count(list.begin(), list.end(), e);
  };
  std::vector<entry> all = wanted;
  all.insert(all.end(), got.begin(), got.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (auto const& e : all)
    if (count(wanted, e) != count(got, e))
      faults.push_back(std::apply(detail::describe, e) + " ran " + std::to_string(count(got, e)) +
                       " times, the contract lists it " + std::to_string(count(wanted, e)) +
                       " times");
  if (faults.empty())
    faults.push_back("the collectives of the contract ran in another order than it lists them");
  return faults;
}

}  // namespace dtm::testing
