#pragma once
// Run-time checks of core/ end here. The functions are declared without <string>, so that the
// vocabulary stays light; dtm/core/errors.hpp and dtm/core/refusals.hpp give them their words.

#include <cstdint>

namespace dtm::detail {

[[noreturn]] void refuse_uneven(char const* dimension, std::int64_t extent, char const* axes,
                                std::int64_t parts);
[[noreturn]] void refuse_extent(char const* dimension, std::int64_t extent);
[[noreturn]] void refuse_local_size(char const* what, std::int64_t got, std::int64_t expected);

}  // namespace dtm::detail
