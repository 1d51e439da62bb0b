#pragma once
// A string literal as a template argument: the letter of a dimension, the name of an axis, the
// formula of a contraction. Only for values that people read or the compiler parses; identities
// are types (dims.hpp).

#include <cstddef>

namespace dtm {

template <std::size_t Length>
struct text {
  char characters[Length];

  constexpr text(char const (&literal)[Length]) : characters{} {
    for (std::size_t i = 0; i < Length; ++i) characters[i] = literal[i];
  }
  static constexpr std::size_t size = Length - 1;  // without the final zero
  constexpr char operator[](std::size_t i) const { return characters[i]; }
};

}  // namespace dtm
