#pragma once
// Memory budgets (law L7). A module states the class of what it saves for backward; a saved tensor
// above the class, or one that does not shrink with the mesh, does not compile. Three things are
// asserted, each with its own sentence:
//
//   1. large dimensions (tokens, msa_rows, atoms, windows) occur no more often than the class allows
//   2. a tensor of the class' full order is sharded on every axis of the class
//   3. element bytes times static channels, summed over those tensors, stay within the allowance per position
//
// Lower-order tensors (a [batch, tokens] mask beside a pair) must be sharded by as many context
// axes as they have large dimensions.

#include <cstdint>

#include "dtm/contract/diagnose.hpp"

namespace dtm {

template <class... Named>
struct saved {};

/// What a module may keep: `Large` large dimensions, `Bytes` per position of the class.
template <class Class, int Large, std::int64_t Bytes>
struct budget {
  using budget_class = Class;
  static constexpr int large = Large;
  static constexpr std::int64_t bytes_per_position = Bytes;
};

namespace budget_class {
struct nothing {
  static constexpr char const* name = "nothing";
};
struct single {
  static constexpr char const* name = "single";
};
struct pair {
  static constexpr char const* name = "pair";
};
struct msa {
  static constexpr char const* name = "msa";
};
struct window {
  static constexpr char const* name = "window";
};
}  // namespace budget_class

using no_budget = budget<budget_class::nothing, 0, 0>;
template <std::int64_t Bytes>
using single_budget = budget<budget_class::single, 1, Bytes>;
template <std::int64_t Bytes>
using pair_budget = budget<budget_class::pair, 2, Bytes>;
template <std::int64_t Bytes>
using msa_budget = budget<budget_class::msa, 2, Bytes>;
template <std::int64_t Bytes>
using window_budget = budget<budget_class::window, 1, Bytes>;

namespace contract {

template <class Where, class Class, int LargeDimensions, int Allowed>
struct saved_above_the_class {
  static_assert(dtm::detail::false_for<Where, Class>,
                "dtm budget: a tensor saved for backward grows faster than the module's budget "
                "class; Where, Class, LargeDimensions and Allowed stand in the line that names "
                "saved_above_the_class");
};
template <class Where, class Class, int AxesThatShard, int Needed>
struct saved_without_sharding {
  static_assert(dtm::detail::false_for<Where, Class>,
                "dtm budget: a tensor saved for backward does not shrink with the mesh: it needs "
                "as many sharding axes as its class; Where, Class, AxesThatShard and Needed stand "
                "in the line that names saved_without_sharding");
};
template <class Module, class Class, std::int64_t Got, std::int64_t Allowed>
struct saved_bytes_per_position {
  static_assert(Got <= Allowed,
                "dtm budget: a module keeps more for backward than its contract allows; Module, "
                "Class, Got and Allowed stand in the line that names saved_bytes_per_position");
};

}  // namespace contract

namespace detail {

template <class D>
struct named_dimension {
  using type = D;
};
template <class D, std::int64_t E>
struct named_dimension<pinned<D, E>> {
  using type = D;
};

template <class D>
inline constexpr bool is_large = run_time_dimension<typename named_dimension<D>::type> &&
                                 !std::is_same_v<typename named_dimension<D>::type, batch> &&
                                 !std::is_same_v<typename named_dimension<D>::type, conformers>;

template <class... D>
constexpr int large_dimensions(shape<D...>*) {
  return (0 + ... + int(is_large<D>));
}
template <class... D>
constexpr std::int64_t channel_volume(shape<D...>*) {
  return (std::int64_t{1} * ... *
          (plane_channels<D> > 0  ? plane_channels<D>
           : is_channel_extent<D> ? D::static_extent
                                  : 1));
}
template <class Layout>
constexpr int sharding_axes() {
  int count = 0;
  for (int axis = 0; axis < Layout::mesh_type::rank; ++axis) count += Layout::sharded_by(axis) >= 0;
  return count;
}

template <class Tensor>
inline constexpr int large_of =
    large_dimensions(static_cast<typename Tensor::shape_type*>(nullptr));

// Bytes per position of the class: only tensors of full order count.
template <class Tensor, class Budget>
constexpr std::int64_t charge() {
  if constexpr (large_of<Tensor> == Budget::large && Budget::large > 0)
    return std::int64_t(sizeof(typename Tensor::element_type)) *
           channel_volume(static_cast<typename Tensor::shape_type*>(nullptr));
  else
    return 0;
}

template <class Tensor>
inline constexpr bool has_batch = occurrences<batch>(typename Tensor::shape_type{}) > 0;

// A tensor with large dimensions needs one axis for each of them, and one for the batch.
template <class Tensor>
inline constexpr int axes_needed = large_of<Tensor> == 0
                                       ? 0
                                       : large_of<Tensor> + int(has_batch<Tensor>);

template <class Module, class Budget, class Named>
struct saved_check;
template <class Module, class Budget, class Name, class Tensor>
struct saved_check<Module, Budget, named<Name, Tensor>>
    : std::conditional_t<
          (large_of<Tensor> > Budget::large),
          contract::saved_above_the_class<at<Module, Name>, typename Budget::budget_class,
                                          large_of<Tensor>, Budget::large>,
          unless<(sharding_axes<typename Tensor::layout_type>() >= axes_needed<Tensor>),
                 contract::saved_without_sharding<at<Module, Name>, typename Budget::budget_class,
                                                  sharding_axes<typename Tensor::layout_type>(),
                                                  axes_needed<Tensor>>>> {};

template <class Module, class Budget, class Saved>
struct budget_check;
template <class Module, class Budget, class... Named>
struct budget_check<Module, Budget, saved<Named...>>
    : all_of<saved_check<Module, Budget, Named>...> {
  static constexpr std::int64_t bytes =
      (std::int64_t{0} + ... + charge<typename Named::type, Budget>());
};

}  // namespace detail

/// Bytes per position of the class that a module saves, checked against its budget: instantiate in
/// the module.
template <class Module, class Saved, class Budget>
struct within_budget
    : detail::budget_check<Module, Budget, Saved>,
      contract::saved_bytes_per_position<Module, typename Budget::budget_class,
                                         detail::budget_check<Module, Budget, Saved>::bytes,
                                         Budget::bytes_per_position> {};

namespace detail {

template <class Tensor, class Mesh, class... D>
std::int64_t bytes_of(site<Mesh> const& here, extents<D...> const& bound) {
  using layout_type = typename Tensor::layout_type;
  auto const place = site_on<typename layout_type::mesh_type>(here);
  auto const global = checked_extents<layout_type>(
      bind_shape<typename Tensor::shape_type>::from(bound), place.sizes);
  return tile_of<layout_type>(global, place.sizes, place.coordinates).size() *
         std::int64_t(sizeof(typename Tensor::element_type));
}

}  // namespace detail

/// The formula of law L7 evaluated: bytes per rank of a list of saved tensors at given extents and
/// mesh sizes.
template <class Saved>
struct saved_bytes;
template <class... Names, class... Tensors>
struct saved_bytes<saved<named<Names, Tensors>...>> {
  template <class Mesh, class... D>
  static std::int64_t at(site<Mesh> const& here, extents<D...> const& bound) {
    return (std::int64_t{0} + ... + detail::bytes_of<Tensors>(here, bound));
  }
};

}  // namespace dtm
