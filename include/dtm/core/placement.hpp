#pragma once
// What one mesh axis does to a tensor: shard<d> splits dimension d into equal blocks, replicate
// holds the same value on every coordinate, partial<op> holds a term of a pending reduction.

#include "dtm/core/type_list.hpp"

namespace dtm {

struct sum {
  static constexpr char const* name = "sum";
};
struct max {
  static constexpr char const* name = "max";
};

template <int Dimension>
struct shard {
  static_assert(Dimension >= 0, "dtm layout: shard<d> counts dimensions from 0");
};
struct replicate {};
template <class Reduction>
struct partial {};

namespace detail {

template <class>
inline constexpr int shard_dimension = -1;
template <int D>
inline constexpr int shard_dimension<shard<D>> = D;

template <class>
inline constexpr bool is_shard = false;
template <int D>
inline constexpr bool is_shard<shard<D>> = true;

template <class>
inline constexpr bool is_replicate = false;
template <>
inline constexpr bool is_replicate<replicate> = true;

template <class>
inline constexpr bool is_partial = false;
template <class Reduction>
inline constexpr bool is_partial<partial<Reduction>> = true;

template <class>
inline constexpr bool is_placement = false;
template <int D>
inline constexpr bool is_placement<shard<D>> = true;
template <>
inline constexpr bool is_placement<replicate> = true;
template <>
inline constexpr bool is_placement<partial<sum>> = true;
template <>
inline constexpr bool is_placement<partial<max>> = true;

template <class P>
struct no_cotangent_of {
  static_assert(
      false_for<P>,
      "dtm layout: a pending maximum has no cotangent, for it is not linear; all_reduce it first");
};
template <class P>
struct cotangent_placement : no_cotangent_of<P> {
  using type = P;
};
template <int D>
struct cotangent_placement<shard<D>> {
  using type = shard<D>;
};
template <>
struct cotangent_placement<replicate> {
  using type = partial<sum>;
};
template <>
struct cotangent_placement<partial<sum>> {
  using type = replicate;
};

template <class P, class Renumber>
struct renumber_placement {
  using type = P;
};
template <int D, class Renumber>
struct renumber_placement<shard<D>, Renumber> {
  using type = shard<Renumber::map(D)>;
};

}  // namespace detail

}  // namespace dtm
