#pragma once
// Catch2 2 (Debian 12) and Catch2 3 (Debian 13) under one include. Tests use only what both have, and
// say `contains("...")` for the string matcher that the versions name differently.

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define DTM_CATCH2_VERSION 3
#else
#include <catch2/catch.hpp>
#define DTM_CATCH2_VERSION 2
#endif

#include <string>

namespace dtm::testing {

#if DTM_CATCH2_VERSION == 3
using Catch::Approx;
inline auto contains(std::string const& text) {
  return Catch::Matchers::ContainsSubstring(text);
}
#else
using Catch::Detail::Approx;
inline auto contains(std::string const& text) {
  return Catch::Matchers::Contains(text);
}
#endif

}  // namespace dtm::testing
