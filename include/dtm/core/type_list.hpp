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

template <class Wanted, class... T>
inline constexpr int count_of = (0 + ... + int(std::is_same_v<Wanted, T>));

/// True for every argument pack; false_for is a `false` that waits for instantiation.
template <class...>
inline constexpr bool false_for = false;

/// Checks are base classes: instantiating a class whose base is `unless<ok, Error>` instantiates
/// Error, and with it its static_assert, only when the check fails. (A check inside a constexpr
/// function draws a second error.)
template <class Error>
struct passed {};
template <bool Ok, class Error>
using unless = std::conditional_t<Ok, passed<Error>, Error>;

template <int Index, class Check>
struct numbered : Check {};
template <class Indices, class... Check>
struct numbered_checks;
template <std::size_t... I, class... Check>
struct numbered_checks<std::index_sequence<I...>, Check...> : numbered<int(I), Check>... {};

/// Several checks at once; numbered, because a class may not have one base twice.
template <class... Check>
struct all_of : numbered_checks<std::index_sequence_for<Check...>, Check...> {};

/// Asks a check without failing.
template <class Check>
inline constexpr bool holds = false;
template <class Error>
inline constexpr bool holds<passed<Error>> = true;
template <class... Check>
inline constexpr bool holds<all_of<Check...>> = (holds<Check> && ...);

/// Several checks of one fact: only the first that fails speaks.
template <class... Check>
struct first_error : passed<void> {};
template <class First, class... Rest>
struct first_error<First, Rest...> : std::conditional_t<holds<First>, first_error<Rest...>, First> {
};
template <class... Check>
inline constexpr bool holds<first_error<Check...>> = (holds<Check> && ...);

/// The `type` of a type function, with its `check` enforced.
template <class Checked>
struct checked_type : Checked::check {
  using type = typename Checked::type;
};

}  // namespace dtm::detail
