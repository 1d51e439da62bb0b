#pragma once
// A borrowed, contiguous, row-major block of memory with run-time extents: what a tensor shows of
// its tile.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dtm {

template <class T, int Rank>
struct view {
  T* data = nullptr;
  std::int64_t extent[Rank > 0 ? Rank : 1] = {};

  static constexpr int rank = Rank;

  constexpr std::int64_t size() const {
    std::int64_t product = 1;
    for (int d = 0; d < Rank; ++d) product *= extent[d];
    return product;
  }
  /// Product of the extents before and after a dimension: [outer, extent, inner].
  constexpr std::int64_t outer(int dimension) const {
    std::int64_t product = 1;
    for (int d = 0; d < dimension; ++d) product *= extent[d];
    return product;
  }
  constexpr std::int64_t inner(int dimension) const {
    std::int64_t product = 1;
    for (int d = dimension + 1; d < Rank; ++d) product *= extent[d];
    return product;
  }
  template <class... Index>
  constexpr T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == std::size_t(Rank), "dtm view: one index per dimension");
    std::int64_t offset = 0;
    int d = 0;
    ((offset = offset * extent[d++] + std::int64_t(index)), ...);
    return data[offset];
  }
  constexpr T* begin() const { return data; }
  constexpr T* end() const { return data + size(); }
  constexpr operator view<T const, Rank>() const requires(!std::is_const_v<T>) {
    view<T const, Rank> result;
    result.data = data;
    for (int d = 0; d < Rank; ++d) result.extent[d] = extent[d];
    return result;
  }
};

}  // namespace dtm
