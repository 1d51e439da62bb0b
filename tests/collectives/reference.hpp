#pragma once
// A global tensor that is known everywhere: every element is a whole number computed from its
// global index, and, where the tensor is a pending reduction, from the coordinates that say whose
// term it is. So each rank fills its tile without a message, and after a collective says of each of
// its elements what it must be, bit for bit. Tiles lie in the memory of the backend; what is said of
// them is said on the host.
//
// Nothing here is a template on a layout: the tests instantiate thousands of those.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "dtm/core/host_copy.hpp"
#include "support/backend.hpp"
#include "support/catch.hpp"
#include "support/meshes.hpp"
#include "support/runner.hpp"

namespace reference {

using dtm::testing::grid;
using grid_context = dtm::testing::test_context;
template <class T, class Layout>
using grid_tensor = dtm::tensor<T, Layout, dtm::testing::device>;
constexpr int axes = grid::rank;
constexpr int max_rank = 4;

template <class Axis>
constexpr unsigned bit = 1u << grid::index<Axis>();

using dtm::testing::meshes;

inline grid_context on_mesh(std::vector<int> const& sizes,
                            dtm::comm::world& ranks = dtm::testing::world()) {
  return grid_context(ranks, sizes, 0, dtm::testing::test_options());
}

/// All ranks, with operands on the host.
inline dtm::comm::group& everyone(grid_context& ctx) {
  return ctx.groups().along((1u << axes) - 1u);
}

/// Whole numbers that look like noise, one for each index and term.
inline std::uint64_t noise(std::int64_t const* index, int rank, int const* term) {
  std::uint64_t h = 0x9e3779b97f4a7c15ull;
  auto const mix = [&](std::uint64_t value) {
    h = (h ^ (value + 1)) * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 29;
  };
  for (int d = 0; d < rank; ++d) mix(std::uint64_t(index[d]));
  for (int a = 0; a < axes; ++a) mix(std::uint64_t(term[a]));
  return h;
}

/// What a tensor holds. An axis of `terms` has a value of its own at each of its coordinates; the
/// other axes do not matter. Terms of a maximum are all negative, so that a stray zero wins and is
/// seen.
struct content {
  unsigned terms = 0;
  bool maximum = false;
};

/// Exact in every element type: 8 bits where the type is narrow.
template <class T>
std::int64_t whole_number(std::uint64_t bits, content const& what) {
  if (std::is_same_v<T, std::uint8_t>) return std::int64_t(bits % 251);
  std::int64_t const span = sizeof(T) == 2 ? 127 : 99991;
  std::int64_t const number = std::int64_t(bits % std::uint64_t(2 * span + 1)) - span;
  return what.maximum ? -1 - std::abs(number) : number;
}

template <class T>
T number_as(std::int64_t number) {
  if constexpr (std::is_same_v<T, dtm::bf16>)
    return dtm::bf16(float(number));
  else
    return T(number);
}

/// The element at an index as the rank at `coordinates` holds it, after a reduction over the axes
/// of `reduced`.
template <class T>
T element_at(std::int64_t const* index, int rank, int const* sizes, int const* coordinates,
             content const& what, unsigned reduced = 0) {
  int term[axes];
  for (int a = 0; a < axes; ++a) term[a] = (what.terms & ~reduced) >> a & 1u ? coordinates[a] : 0;
  std::int64_t result = 0;
  for (bool first = true;; first = false) {
    auto const number = whole_number<T>(noise(index, rank, term), what);
    result = first ? number : what.maximum ? std::max(result, number) : result + number;
    int a = axes - 1;
    for (; a >= 0; --a) {
      if (!(reduced >> a & 1u)) continue;
      if (++term[a] < sizes[a]) break;
      term[a] = 0;
    }
    if (a < 0) return number_as<T>(result);
  }
}

/// A box of global indices, and the extents inside which indices mean something (planes may reach
/// beyond).
struct region {
  int rank = 0;
  std::int64_t begin[max_rank] = {}, end[max_rank] = {}, real[max_rank] = {};

  bool is_real(std::int64_t const* index) const {
    for (int d = 0; d < rank; ++d)
      if (index[d] >= real[d]) return false;
    return true;
  }
  /// visit(global index, offset in the tile), row-major.
  template <class Visit>
  void each(Visit visit) const {
    std::int64_t index[max_rank];
    std::copy(begin, begin + max_rank, index);
    for (int d = 0; d < rank; ++d)
      if (begin[d] >= end[d]) return;
    for (std::int64_t offset = 0;; ++offset) {
      visit(static_cast<std::int64_t const*>(index), offset);
      int d = rank - 1;
      while (d >= 0 && ++index[d] == end[d]) index[d] = begin[d], --d;
      if (d < 0) return;
    }
  }
};

template <class... D>
void clip_planes(region& part, dtm::shape<D...>) {
  int d = 0;
  ((dtm::detail::plane_channels<D> > 0 ? void(part.real[d++] = dtm::detail::plane_channels<D>)
                                       : void(++d)),
   ...);
}

template <class Layout>
region region_of(dtm::global_extents<Layout::rank> const& global, int const* sizes,
                 int const* coordinates) {
  auto const tile = dtm::tile_of<Layout>(global, sizes, coordinates);
  region part;
  part.rank = Layout::rank;
  for (int d = 0; d < Layout::rank; ++d) {
    part.begin[d] = tile.begin[d];
    part.end[d] = tile.end[d];
    part.real[d] = global[d];
  }
  clip_planes(part, typename Layout::shape_type{});
  return part;
}
template <class X>
region region_of(X const& x) {
  return region_of<typename X::layout_type>(x.global(), x.where().sizes, x.where().coordinates);
}

template <class T>
void fill_tile(T* data, region const& part, int const* sizes, int const* coordinates,
               content const& what) {
  part.each([&](std::int64_t const* index, std::int64_t at) {
    data[at] = part.is_real(index) ? element_at<T>(index, part.rank, sizes, coordinates, what)
                                   : number_as<T>(113);  // never sent, never read
  });
}

/// Empty, or how many elements are wrong and the first of them.
template <class T>
std::string compare_tile(T const* data, region const& part, int const* sizes,
                         int const* coordinates, content const& what, unsigned reduced) {
  std::int64_t wrong = 0, seen = 0;
  std::string first;
  part.each([&](std::int64_t const* index, std::int64_t at) {
    if (!part.is_real(index)) return;
    ++seen;
    T const expected = element_at<T>(index, part.rank, sizes, coordinates, what, reduced);
    if (data[at] == expected || ++wrong > 1) return;
    first = "at [";
    for (int d = 0; d < part.rank; ++d) first += (d ? ", " : "") + std::to_string(index[d]);
    first += "] is " + std::to_string(double(data[at])) + ", expected " +
             std::to_string(double(expected));
  });
  return wrong == 0 ? std::string()
                    : std::to_string(wrong) + " of " + std::to_string(seen) + " wrong: " + first;
}

template <class Mesh, class Shape, class... P>
constexpr unsigned partial_axes(dtm::layout<Mesh, Shape, P...>*) {
  unsigned mask = 0, bit = 1;
  ((mask |= dtm::detail::is_partial<P> ? bit : 0u, bit <<= 1), ...);
  return mask;
}
template <class Mesh, class Shape, class... P>
constexpr bool has_maximum(dtm::layout<Mesh, Shape, P...>*) {
  return (std::is_same_v<P, dtm::partial<dtm::max>> || ...);
}

/// What a tensor of this layout holds: its partial axes hold terms.
template <class Layout>
constexpr content content_of() {
  constexpr Layout* none = nullptr;
  return {partial_axes(none), has_maximum(none)};
}

template <class X>
void fill(X& x, content const& what = content_of<typename X::layout_type>()) {
  std::vector<typename X::element_type> values(static_cast<std::size_t>(x.size()));
  fill_tile(values.data(), region_of(x), x.where().sizes, x.where().coordinates, what);
  x.copy_from_host(values.data());
}

/// Empty, or what is wrong with x.
template <class X>
std::string compare(X const& x, content const& what, unsigned reduced = 0) {
  return compare_tile(dtm::on_host(x).data(), region_of(x), x.where().sizes, x.where().coordinates,
                      what, reduced);
}

/// The same, where x came from the rank at other coordinates.
template <class X, class Where>
std::string compare_from(Where const& there, X const& x, content const& what) {
  using layout_type = typename X::layout_type;
  return compare_tile(dtm::on_host(x).data(),
                      region_of<layout_type>(x.global(), there.sizes, there.coordinates),
                      there.sizes, there.coordinates, what, 0);
}

/// One assertion for a whole tile.
inline void judge(std::string const& problem, std::string const& what) {
  INFO(what);
  CHECK(problem == "");
}

inline std::string mesh_text(int const* sizes) {
  return "mesh " + std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" +
         std::to_string(sizes[2]);
}

}  // namespace reference
