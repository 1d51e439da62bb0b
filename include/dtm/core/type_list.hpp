#pragma once
// The only list machinery of the library: picking, and rebuilding a list from positions. Folds and
// inheritance, no recursion: the cost is linear in the (short) lists and messages stay flat.

#include <cstddef>
#include <type_traits>
#include <utility>

namespace dtm::detail {

template <std::size_t Index, class T>
struct slot {
  using type = T;
};

template <class Indices, class... T>
struct slots;
template <std::size_t... Index, class... T>
struct slots<std::index_sequence<Index...>, T...> : slot<Index, T>... {};

template <std::size_t Index, class T>
slot<Index, T> pick_slot(slot<Index, T> const&);

/// The type at a position of a pack.
template <std::size_t Index, class... T>
using pick_t = typename decltype(pick_slot<Index>(
    std::declval<slots<std::index_sequence_for<T...>, T...> const&>()))::type;

/// Position of a type in a pack, or -1.
template <class Wanted, class... T>
constexpr int position_of() {
  int position = 0, found = -1;
  ((std::is_same_v<Wanted, T> && found < 0 ? void(found = position) : void(), ++position), ...);
  return found;
}

/// True for every argument pack; false_for is a `false` that waits for instantiation.
template <class...>
inline constexpr bool false_for = false;

}  // namespace dtm::detail
