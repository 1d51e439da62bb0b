#pragma once
// tensor<element, layout, device>: this rank's tile of a global tensor. The type is the whole
// truth about the layout; there is no conversion between layouts except a named collective or a
// named local slice (laws L1, L4).
//
//   tensor<float, pair<128>> z(ctx, extents{bind<batch>(1), bind<tokens>(384)});
//
// Tensors move; a copy is asked for by name (clone). `to_local` hands the tile to a kernel,
// `from_local` takes one back with the layout that is claimed for it (law L15).

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "dtm/core/device.hpp"
#include "dtm/core/element.hpp"
#include "dtm/core/memory.hpp"
#include "dtm/core/tile.hpp"
#include "dtm/core/view.hpp"

namespace dtm {

namespace detail {

template <class Dimension>
struct extent_is_bound {
  static_assert(false_for<Dimension>,
                "dtm tensor: a run-time dimension of the shape has no extent; add "
                "bind<Dimension>(n); Dimension stands in the line that names extent_is_bound");
};

template <class Mesh, class Expected>
struct mesh_is {
  static_assert(false_for<Mesh, Expected>,
                "dtm tensor: the context has another mesh than the tensor; both stand in the line "
                "that names mesh_is");
};

template <class Expected, class Context>
struct device_is {
  static_assert(false_for<Expected, Context>,
                "dtm tensor: the context has another device than the tensor; Expected and Context "
                "stand in the line that names device_is");
};

// Of a context; what stands for one in tests of types has none and means the host.
template <class Context, class = void>
struct device_of {
  using type = host;
  template <class Device>
  using check = passed<void>;
};
template <class Context>
struct device_of<Context, std::void_t<typename Context::device_type>> {
  using type = typename Context::device_type;
  template <class Device>
  using check = unless<std::is_same_v<Device, type>, device_is<Device, type>>;
};
template <class Context>
using device_of_t = typename device_of<std::remove_const_t<Context>>::type;

template <class Dimension, class... D>
constexpr std::int64_t bound_extent(extents<D...> const& bound) {
  if constexpr (run_time_dimension<Dimension> && extents<D...>::template has<Dimension>) {
    return bound.template get<Dimension>();
  } else {
    (void)bound;
    return 0;  // settled by checked_extents
  }
}

template <class Shape>
struct bind_shape;
template <class... S>
struct bind_shape<shape<S...>> {
  template <class Bound>
  using check =
      all_of<unless<!run_time_dimension<S> || Bound::template has<S>, extent_is_bound<S>>...>;
  template <class... D>
  static constexpr global_extents<int(sizeof...(S))> from(extents<D...> const& bound) {
    return {{bound_extent<S>(bound)...}};
  }
};
template <>
struct bind_shape<shape<>> {
  template <class Bound>
  using check = passed<void>;
  template <class... D>
  static constexpr global_extents<0> from(extents<D...> const&) {
    return {};
  }
};

}  // namespace detail

template <class T, class Layout, class Device = host>
class tensor
    : detail::static_layout_check<Layout,
                                  std::make_integer_sequence<int, Layout::mesh_type::rank>> {
  static_assert(element<T>,
                "dtm tensor: the element type is float, double, dtm::bf16, std::int32_t, "
                "std::int64_t or std::uint8_t");

 public:
  using element_type = T;
  using layout_type = Layout;
  using shape_type = typename Layout::shape_type;
  using mesh_type = typename Layout::mesh_type;
  using device_type = Device;
  static constexpr int rank = Layout::rank;

  /// A tile with unspecified content. Throws layout_error where an extent does not divide by its
  /// mesh axes.
  template <class Where, class... D>
  tensor(Where const& context, extents<D...> const& bound)
      : tensor(context, detail::bind_shape<shape_type>::from(bound)) {
    (void)sizeof(typename detail::bind_shape<shape_type>::template check<extents<D...>>);
  }

  template <class Where>
  tensor(Where const& context, global_extents<rank> const& wanted) : site_(same_mesh(context)) {
    (void)sizeof(typename detail::device_of<Where>::template check<Device>);
    global_ = checked_extents<Layout>(wanted, site_.sizes);
    auto const held = tile();
    size_ = held.size();
    data_ = static_cast<T*>(site_.storage->take(std::size_t(size_) * sizeof(T)));
    if (site_.storage->fill_fresh)
      site_.storage->fill_bytes(data_, floating_element<T> ? 0xff : 0x7b, std::size_t(bytes()));
  }

  tensor(tensor&& other) noexcept
      : site_(other.site_),
        global_(other.global_),
        size_(std::exchange(other.size_, 0)),
        data_(std::exchange(other.data_, nullptr)) {}
  tensor& operator=(tensor&& other) noexcept {
    if (this == &other) return *this;
    release();
    site_ = other.site_;
    global_ = other.global_;
    size_ = std::exchange(other.size_, 0);
    data_ = std::exchange(other.data_, nullptr);
    return *this;
  }
  tensor(tensor const&) = delete;
  tensor& operator=(tensor const&) = delete;
  ~tensor() { release(); }

  tensor clone() const {
    tensor copy(site_, global_);
    site_.storage->copy_within(copy.data_, data_, std::size_t(bytes()));
    return copy;
  }
  /// size() elements to or from memory that the host may touch; data() of a device's tensor is
  /// not.
  void copy_to_host(T* to) const {
    static_assert(has_values<Device>,
                  "dtm planner: a planned tensor has no values; plan only what runs without them");
    site_.storage->copy_to_host(to, data_, std::size_t(bytes()));
  }
  void copy_from_host(T const* from) {
    site_.storage->copy_from_host(data_, from, std::size_t(bytes()));
  }
  /// Frees the tile before the end of the scope.
  void release() noexcept {
    if (site_.storage != nullptr) site_.storage->give_back(data_, std::size_t(size_) * sizeof(T));
    data_ = nullptr;
    size_ = 0;
  }

  site<mesh_type> const& where() const { return site_; }
  global_extents<rank> const& global() const { return global_; }
  std::int64_t global_extent(int dimension) const { return global_[dimension]; }
  box<rank> tile() const { return tile_of<Layout>(global_, site_.sizes, site_.coordinates); }
  std::int64_t size() const { return size_; }
  std::int64_t bytes() const { return size_ * std::int64_t(sizeof(T)); }
  T* data() { return data_; }
  T const* data() const { return data_; }

  view<T, rank> to_local() { return show(data_); }
  view<T const, rank> to_local() const { return show(static_cast<T const*>(data_)); }

  /// The same tile under another shape of equal order in memory (split or merge of channels): for
  /// local operations that compute the new layout.
  template <class To>
  To relabel(global_extents<To::rank> const& global) && {
    static_assert(std::is_same_v<typename To::element_type, T> &&
                  std::is_same_v<typename To::mesh_type, mesh_type>);
    To result;
    result.site_ = site_;
    result.global_ = checked_extents<typename To::layout_type>(global, site_.sizes);
    if (result.tile().size() != size_)
      detail::refuse_local_size("relabel", size_, result.tile().size());
    result.size_ = std::exchange(size_, 0);
    result.data_ = std::exchange(data_, nullptr);
    return result;
  }

 private:
  template <class, class, class>
  friend class tensor;
  tensor() = default;

  template <class Where>
  static site<mesh_type> const& same_mesh(Where const& context) {
    using got = std::remove_cvref_t<decltype(context.where())>;
    if constexpr (std::is_same_v<got, site<mesh_type>>) {
      return context.where();
    } else {
      (void)sizeof(detail::mesh_is<got, mesh_type>);
      static site<mesh_type> const never{};
      return never;
    }
  }
  template <class U>
  view<U, rank> show(U* pointer) const {
    view<U, rank> result;
    result.data = pointer;
    auto const held = tile();
    for (int d = 0; d < rank; ++d) result.extent[d] = held.extent(d);
    return result;
  }
  site<mesh_type> site_{};
  global_extents<rank> global_{};
  std::int64_t size_ = 0;
  T* data_ = nullptr;
};

/// The type of a cotangent (law L5): shards stay, replicate and partial<sum> change places.
template <class T>
struct cotangent_of;
template <class T, class Layout, class Device>
struct cotangent_of<tensor<T, Layout, Device>> {
  using type = tensor<T, typename detail::cotangent_layout<Layout>::type, Device>;
};
template <class T>
using cotangent_t = typename cotangent_of<T>::type;

namespace detail {

template <class>
inline constexpr bool is_tensor = false;
template <class T, class Layout, class Device>
inline constexpr bool is_tensor<tensor<T, Layout, Device>> = true;

}  // namespace detail

template <class T>
concept any_tensor = detail::is_tensor<std::remove_cvref_t<T>>;

/// The same tensor with another element type, layout.
template <class Tensor, class Layout>
using with_layout_t = tensor<typename Tensor::element_type, Layout, typename Tensor::device_type>;
template <class Tensor, class T>
using with_element_t = tensor<T, typename Tensor::layout_type, typename Tensor::device_type>;

/// The value of a tensor of one element on this rank, where the host may have it.
template <any_tensor X>
typename X::element_type item(X const& x) {
  if (x.size() != 1) detail::refuse_local_size("item", x.size(), 1);
  typename X::element_type value;
  x.copy_to_host(&value);
  return value;
}

/// Takes a local block, in the memory of the device, back as a tile (law L15). Throws layout_error
/// unless the block has the size of the tile. With a context the claimed layout is verified between
/// the ranks at check levels 2 and 3 (comm/verify_layout.hpp).
template <class Layout, class Where, class T, class Device = detail::device_of_t<Where>>
tensor<T, Layout, Device> from_local(Where& context, T const* local, std::int64_t count,
                                     global_extents<Layout::rank> const& global) {
  tensor<T, Layout, Device> result(context, global);
  if constexpr (requires { verify_claim(context, result, count); })
    verify_claim(context, result, count);
  if (count != result.size()) detail::refuse_local_size("from_local", count, result.size());
  result.where().storage->copy_within(result.data(), local, std::size_t(result.bytes()));
  if constexpr (requires { verify_replicas(context, result); }) verify_replicas(context, result);
  return result;
}

}  // namespace dtm
