#pragma once
// Dimensions have names (law L2). A named dimension is an empty struct, so that a compiler message
// prints "tokens" and not a number or a character array; its extent is a run-time value that is
// bound when a tensor is made, or pinned at compile time with pinned<tokens, 384>. A channel
// extent c<128> is a number.
//
// Equal numbers do not make atoms into tokens: the names are compared, never the extents.
//
//   struct ligands : dtm::dim<"L"> {};                // how to declare one's own

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "dtm/core/text.hpp"

namespace dtm {

/// Base of a named dimension; the letter is for printed shapes only.
template <text Letter>
struct dim {
  static constexpr auto letter = Letter;
  static constexpr std::int64_t static_extent = -1;
};

struct batch : dim<"B"> {};
struct tokens : dim<"N"> {};
struct msa_rows : dim<"S"> {};
struct atoms : dim<"A"> {};
struct windows : dim<"K"> {};
struct conformers : dim<"E"> {};
struct templates : dim<"T"> {};

/// A static channel extent.
template <std::int64_t Extent>
struct c {
  static constexpr std::int64_t static_extent = Extent;
};

/// A named dimension whose extent is fixed at compile time; a different type from the unpinned one.
template <class Dimension, std::int64_t Extent>
struct pinned {
  using dimension = Dimension;
  static constexpr auto letter = Dimension::letter;
  static constexpr std::int64_t static_extent = Extent;
};

/// Channels dealt to ranks as whole planes. Shards are even (law L8), so the extent is `Channels`
/// rounded up to the number of ranks that share them; the planes beyond `Channels` exist in memory
/// only, are never sent and never read. Only all_to_all makes this dimension out of c<Channels>,
/// and back.
template <std::int64_t Channels>
struct planes {
  static constexpr std::int64_t static_extent = -1;
  static constexpr std::int64_t channels = Channels;
};

namespace detail {

template <class>
inline constexpr std::int64_t plane_channels = 0;
template <std::int64_t Channels>
inline constexpr std::int64_t plane_channels<planes<Channels>> = Channels;

// The shape checks this, not the dimension itself: clang takes an error inside a concept for a
// second one.
template <class D>
inline constexpr bool extent_is_positive = true;
template <std::int64_t Extent>
inline constexpr bool extent_is_positive<c<Extent>> = Extent > 0;
template <class D, std::int64_t Extent>
inline constexpr bool extent_is_positive<pinned<D, Extent>> = Extent > 0;
template <std::int64_t Channels>
inline constexpr bool extent_is_positive<planes<Channels>> = Channels > 0;

template <class>
inline constexpr bool is_channel_extent = false;
template <std::int64_t Extent>
inline constexpr bool is_channel_extent<c<Extent>> = true;

}  // namespace detail

/// What may stand in a shape.
template <class D>
concept dimension = requires {
  { D::static_extent } -> std::convertible_to<std::int64_t>;
};

/// A dimension whose extent is bound at run time by its name.
template <class D>
concept run_time_dimension = dimension<D> &&(D::static_extent < 0) &&
                             (detail::plane_channels<D> == 0);

/// The run-time extent of one named dimension; made by bind<tokens>(384).
template <class D>
struct extent_of {
  std::int64_t value;
};

template <run_time_dimension D>
constexpr extent_of<D> bind(std::int64_t value) {
  return {value};
}

/// The run-time extents of a program: extents{bind<batch>(1), bind<tokens>(384)}.
template <class... D>
struct extents : extent_of<D>... {
  constexpr explicit extents(extent_of<D>... bound) : extent_of<D>(bound)... {}
  template <class Wanted>
  static constexpr bool has = (std::is_same_v<Wanted, D> || ...);
  template <class Wanted>
  constexpr std::int64_t get() const {
    return static_cast<extent_of<Wanted> const&>(*this).value;
  }
};
template <class... D>
extents(extent_of<D>...) -> extents<D...>;

}  // namespace dtm
