#pragma once
// Numbers for tests as functions of (seed, name, global index): every rank fills its own tile, the
// serial oracle fills the whole tensor, both see the same values, and nothing is sent.
//
// What is drawn is uneven on purpose, because a fault hides where all ranks hold the same:
//
//   activations   uniform; the scale grows along the first large dimension, falls along the second
//   masks         padding at the end (another length in every sample), one interior position that is
//                 masked in every row and column, a masked block, single holes; zero and one, or
//                 weights between
//   parameters    nothing is left at zero or one: matrices uniform / sqrt(fan-in), norm weights
//                 around 1, biases around 0
//
// A large dimension is a named one that is not the batch: tokens, atoms, msa_rows, windows.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtm/contract/budget.hpp"
#include "dtm/serial/array.hpp"

namespace dtm::testing {

enum class dimension_kind : char { batch, large, channels };

/// One element of a global tensor.
struct place {
  std::span<std::int64_t const> index, extent;
  std::span<dimension_kind const> kind;
  std::uint64_t linear = 0;  // row-major

  std::int64_t sample() const {
    for (std::size_t d = 0; d < kind.size(); ++d)
      if (kind[d] == dimension_kind::batch) return index[d];
    return 0;
  }
};

/// The value at a place; `key` is made from seed and name, bits(key, n) gives random bits.
using draw_function = std::function<double(std::uint64_t key, place const&)>;

constexpr std::uint64_t bits(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t x = key + (counter + 1) * 0x9e3779b97f4a7c15ull;  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
constexpr std::uint64_t key_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (char letter : name)
    hash = (hash ^ std::uint64_t(static_cast<unsigned char>(letter))) * 0x100000001b3ull;
  return bits(hash, seed);
}
/// Uniform in [-1, 1).
constexpr double uniform(std::uint64_t key, std::uint64_t counter) {
  return double(std::int64_t(bits(key, counter) >> 10)) * 0x1p-53 - 1.0;
}

// ---- which places are padding -------------------------------------------------------------------
/// Valid length of a large dimension in one sample: a third is padding in even samples, a sixth in
/// odd ones.
constexpr std::int64_t valid_extent(std::int64_t sample, std::int64_t extent) {
  return extent - extent / (sample % 2 == 0 ? 3 : 6);
}
inline bool is_padding(place const& p) {
  for (std::size_t d = 0; d < p.kind.size(); ++d)
    if (p.kind[d] == dimension_kind::large && p.index[d] >= valid_extent(p.sample(), p.extent[d]))
      return true;
  return false;
}

// ---- the usual draws ----------------------------------------------------------------------------
inline double draw_activation(std::uint64_t key, place const& p) {
  double scale = 1;
  int large = 0;
  for (std::size_t d = 0; d < p.kind.size(); ++d) {
    if (p.kind[d] != dimension_kind::large) continue;
    double const along = double(p.index[d]) / double(p.extent[d]);
    scale *= large++ % 2 == 0 ? 0.5 + along : 1.25 - 0.5 * along;
  }
  return scale * uniform(key, p.linear);
}

/// Multiples of 2^-16, so that the terms of a pending sum (fill) are exact in fp32 on small axes.
inline double draw_cotangent(std::uint64_t key, place const& p) {
  return std::round(65536 * draw_activation(key, p)) / 65536;
}

/// A draw that is garbage where the tensor is padded, zero where `garbage` is zero.
inline draw_function with_padding(draw_function draw, double garbage) {
  return [draw = std::move(draw), garbage](std::uint64_t key, place const& p) {
    if (!is_padding(p)) return draw(key, p);
    return garbage == 0 ? 0.0 : garbage * uniform(bits(key, std::uint64_t(garbage)), p.linear);
  };
}

/// 0 or `positive(bits)`.
template <class Positive>
double draw_mask_with(std::uint64_t key, place const& p, Positive positive) {
  if (is_padding(p)) return 0;
  std::int64_t large[2] = {}, extent[2] = {};
  int count = 0;
  for (std::size_t d = 0; d < p.kind.size(); ++d) {
    if (p.kind[d] != dimension_kind::large) continue;
    if (p.extent[d] >= 4 && p.index[d] == p.extent[d] / 4) return 0;  // a whole row or column
    if (count < 2) large[count] = p.index[d], extent[count++] = p.extent[d];
  }
  bool const in_block = count == 2 && large[0] < extent[0] / 6 && large[1] >= extent[1] / 2 &&
                        large[1] < extent[1] / 2 + extent[1] / 6;
  std::uint64_t const random = bits(key, p.linear);
  if (in_block || random % 11 == 0) return 0;
  return positive(random);
}
inline double draw_binary_mask(std::uint64_t key, place const& p) {
  return draw_mask_with(key, p, [](std::uint64_t) { return 1.0; });
}
/// Multiples of 1/64, which every element type holds exactly.
inline double draw_weight_mask(std::uint64_t key, place const& p) {
  return draw_mask_with(key, p,
                        [](std::uint64_t random) { return double(16 + random / 11 % 48) / 64; });
}

inline double draw_small_integer(std::uint64_t key, place const& p) {
  return double(bits(key, p.linear) % 5);
}

/// By the dotted name and rank of a parameter.
inline double draw_parameter(std::string_view name, std::uint64_t key,
                             std::span<std::int64_t const> extents, std::uint64_t linear) {
  double const value = uniform(key, linear);
  if (extents.size() >= 2) return value * std::sqrt(3.0 / double(extents.back()));
  return name.ends_with("weight") ? 1 + 0.5 * value : 0.5 * value;
}

inline bool is_mask_name(std::string_view name) {
  return name == "mask" || name.ends_with("_mask");
}

// ---- rounding to an element type ----------------------------------------------------------------
template <class T>
T to_element(double value) {
  if constexpr (std::is_same_v<T, bf16>)
    return T(float(value));
  else if constexpr (floating_element<T>)
    return T(value);
  else
    return T(std::llround(value));
}
template <class T>
double to_double(T value) {
  return double(value);
}

// ---- filling ------------------------------------------------------------------------------------
namespace detail {

template <class D>
constexpr dimension_kind kind_of() {
  if constexpr (std::is_same_v<typename dtm::detail::named_dimension<D>::type, batch>)
    return dimension_kind::batch;
  else
    return dtm::detail::is_large<D> ? dimension_kind::large : dimension_kind::channels;
}
template <class... D>
constexpr std::array<dimension_kind, sizeof...(D)> kinds_of(shape<D...>*) {
  return {kind_of<D>()...};
}

}  // namespace detail

template <class Tensor>
inline constexpr auto kinds = detail::kinds_of(static_cast<typename Tensor::shape_type*>(nullptr));

/// visit(place, offset in the box) for every element of a box of a global tensor of this type.
template <class Tensor, class Visit>
void each_place(global_extents<Tensor::rank> const& global, box<Tensor::rank> const& part,
                Visit&& visit) {
  constexpr std::size_t rank = std::size_t(Tensor::rank);
  std::array<std::int64_t, rank> index{}, extent{};
  for (std::size_t d = 0; d < rank; ++d) extent[d] = global[int(d)];
  std::int64_t const size = part.size();
  for (std::int64_t offset = 0; offset < size; ++offset) {
    std::int64_t rest = offset;
    for (int d = Tensor::rank - 1; d >= 0; --d) {
      index[std::size_t(d)] = part.begin[d] + rest % part.extent(d);
      rest /= part.extent(d);
    }
    std::uint64_t linear = 0;
    for (std::size_t d = 0; d < rank; ++d)
      linear = linear * std::uint64_t(extent[d]) + std::uint64_t(index[d]);
    visit(place{index, extent, kinds<Tensor>, linear}, offset);
  }
}

/// This rank's tile of the drawn tensor. Terms of a pending sum are uneven: of an axis of size P
/// the coordinates hold 1/2, 1/4, ... of the value, the last two the same, and all terms sum to it.
template <any_tensor X>
void fill(X& x, draw_function const& draw, std::uint64_t key) {
  using layout_type = typename X::layout_type;
  double share = 1;
  [&]<int... A>(std::integer_sequence<int, A...>) {
    auto const split = [&](bool partial, int size, int coordinate) {
      if (partial) share *= std::ldexp(1.0, -std::min(coordinate + 1, size - 1));
    };
    (split(dtm::detail::is_partial<typename layout_type::template placement_at<A>>,
           x.where().sizes[A], x.where().coordinates[A]),
     ...);
  }
  (std::make_integer_sequence<int, layout_type::mesh_type::rank>{});
  std::vector<typename X::element_type> values(std::size_t(x.size()));
  each_place<X>(x.global(), x.tile(), [&](place const& p, std::int64_t offset) {
    values[std::size_t(offset)] = to_element<typename X::element_type>(share * draw(key, p));
  });
  x.copy_from_host(values.data());
}

/// The whole drawn tensor, rounded as its tiles are.
template <any_tensor X>
serial::array<double> fill_whole(X const& like, draw_function const& draw, std::uint64_t key) {
  box<X::rank> everything;
  serial::extent_list extents;
  for (int d = 0; d < X::rank; ++d) extents.push_back(everything.end[d] = like.global_extent(d));
  serial::array<double> result(std::move(extents));
  each_place<X>(like.global(), everything, [&](place const& p, std::int64_t offset) {
    result.values[std::size_t(offset)] =
        to_double(to_element<typename X::element_type>(draw(key, p)));
  });
  return result;
}

}  // namespace dtm::testing
