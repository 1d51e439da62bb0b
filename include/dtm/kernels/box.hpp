#pragma once
// Copies between a box of a tile and a packed buffer: what an exchange between ranks sends and
// receives. Function objects over an index of the box, row-major. Reads 1, writes 1 (unpack_box_add
// reads 2); memory.
//
// A copy does not look at its elements: it moves pieces of 1 to 16 bytes, the widest that fit the
// box, the tile and the pointers.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/core/tile.hpp"
#include "dtm/kernels/device_form.hpp"

namespace dtm::kernels {

namespace detail {

template <int Bytes>
struct word_of_piece {
  using type = std::uint64_t;
};
template <>
struct word_of_piece<1> {
  using type = std::uint8_t;
};
template <>
struct word_of_piece<2> {
  using type = std::uint16_t;
};
template <>
struct word_of_piece<4> {
  using type = std::uint32_t;
};

}  // namespace detail

/// Bytes that move together, of whatever elements they are.
template <int Bytes>
struct [[gnu::may_alias]] alignas(Bytes) piece {
  using word = typename detail::word_of_piece<Bytes>::type;
  word words[Bytes / sizeof(word)];
};

/// Where the elements of a box lie in its tile. Dimensions that are complete are merged with the
/// one before, so that most boxes need one or two divisions an index.
template <int Rank>
struct box_walk {
  static constexpr int dimensions = Rank > 0 ? Rank : 1;
  std::int64_t extent[dimensions], stride[dimensions], first;

  static box_walk of(box<Rank> const& tile, box<Rank> const& part) {
    box_walk walk;
    for (int d = 0; d < dimensions; ++d) walk.extent[d] = walk.stride[d] = 1;
    walk.first = 0;
    std::int64_t stride = 1;
    int at = dimensions - 1;  // where the next dimension goes
    for (int d = Rank - 1; d >= 0; --d) {
      walk.first += (part.begin[d] - tile.begin[d]) * stride;
      bool const inner_is_complete =
          at + 1 < dimensions && walk.extent[at + 1] * walk.stride[at + 1] == stride;
      if (inner_is_complete)
        walk.extent[at + 1] *= part.extent(d);
      else if (part.extent(d) != 1) {
        walk.extent[at] = part.extent(d);
        walk.stride[at] = stride;
        --at;
      }
      stride *= tile.extent(d);
    }
    return walk;
  }
  /// The same box in pieces of `count` elements, or no: is a run of the last dimension whole
  /// pieces, at whole pieces from the start?
  bool divides_by(std::int64_t count) const {
    int const last = dimensions - 1;
    if (stride[last] != 1 || extent[last] % count != 0 || first % count != 0) return false;
    for (int d = 0; d < last; ++d)
      if (extent[d] > 1 && stride[d] % count != 0) return false;
    return true;
  }
  box_walk in_pieces_of(std::int64_t count) const {
    box_walk walk = *this;
    walk.extent[dimensions - 1] /= count;
    walk.first /= count;
    for (int d = 0; d + 1 < dimensions; ++d)
      if (walk.extent[d] > 1) walk.stride[d] /= count;
    return walk;
  }
  std::int64_t size() const {
    std::int64_t product = 1;
    for (int d = 0; d < dimensions; ++d) product *= extent[d];
    return product;
  }
  DTM_HD std::int64_t offset(std::int64_t i) const {
    std::int64_t result = first;
    DTM_UNROLL
    for (int d = dimensions - 1; d >= 0; --d) {
      if (extent[d] == 1) continue;
      std::int64_t const next = i / extent[d];
      result += (i - next * extent[d]) * stride[d];
      i = next;
    }
    return result;
  }
};

/// packed[i] = the i-th element of the box.
template <class T, int Rank>
struct pack_box {
  box_walk<Rank> walk;
  T const* tile;
  T* packed;
  DTM_HD void operator()(std::int64_t i) const { packed[i] = tile[walk.offset(i)]; }
};

/// The i-th element of the box = packed[i].
template <class T, int Rank>
struct unpack_box {
  box_walk<Rank> walk;
  T const* packed;
  T* tile;
  DTM_HD void operator()(std::int64_t i) const { tile[walk.offset(i)] = packed[i]; }
};

/// The i-th element of the box += packed[i].
template <class T, int Rank>
struct unpack_box_add {
  box_walk<Rank> walk;
  T const* packed;
  T* tile;
  DTM_HD void operator()(std::int64_t i) const {
    using A = accumulate_t<T>;
    std::int64_t const at = walk.offset(i);
    tile[at] = T(A(tile[at]) + A(packed[i]));
  }
};

}  // namespace dtm::kernels
