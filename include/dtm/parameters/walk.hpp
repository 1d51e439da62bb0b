#pragma once
// Parameter trees (law L14). A module is a plain struct declared with BOOST_HANA_DEFINE_STRUCT;
// its members carry the serial module's attribute names in registration order, so names and order
// of named_parameters() and state_dict() line up with a serial checkpoint. At most 39 members a
// struct (Boost 1.74).
//
// Only class templates use the macro (in a plain struct every member costs compile time even when
// nobody walks), and the walk belongs into one translation unit a model.

#include <boost/hana/accessors.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/core/to.hpp>
#include <boost/hana/define_struct.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtm/core/space.hpp"

namespace dtm {

/// A list of equal modules; depth is a run-time value. Names get the index: layers.0.norm.weight.
template <class Module>
struct module_list {
  std::vector<Module> items;

  template <class Context>
  module_list(Context& ctx, int count) {
    items.reserve(std::size_t(count));
    for (int i = 0; i < count; ++i) items.emplace_back(ctx);
  }
  Module& operator[](int i) { return items[std::size_t(i)]; }
  Module const& operator[](int i) const { return items[std::size_t(i)]; }
  int size() const { return int(items.size()); }
};

namespace detail {

template <class>
inline constexpr bool is_module_list = false;
template <class M>
inline constexpr bool is_module_list<module_list<M>> = true;

// A module whose members are named as its parent's own (serial code that has no such submodule).
template <class M>
concept without_name = requires {
  requires M::without_name;
};

template <class Node, class Visit>
void walk(Node& node, std::string const& name, Visit& visit) {
  using node_type = std::remove_const_t<Node>;
  if constexpr (is_tensor<node_type>) {
    visit(name, node);
  } else if constexpr (is_module_list<node_type>) {
    for (int i = 0; i < node.size(); ++i) walk(node[i], name + "." + std::to_string(i), visit);
  } else if constexpr (boost::hana::Struct<node_type>::value) {
    boost::hana::for_each(boost::hana::accessors<node_type>(), [&](auto const& member) {
      std::string const own = boost::hana::to<char const*>(boost::hana::first(member));
      auto& child = boost::hana::second(member)(node);
      if constexpr (without_name<std::remove_cvref_t<decltype(child)>>)
        walk(child, name, visit);
      else
        walk(child, name.empty() ? own : name + "." + own, visit);
    });
  }
}

}  // namespace detail

/// visit(dotted name, tensor&) for every parameter, in registration order.
template <class Module, class Visit>
void each_parameter(Module& module, Visit visit) {
  detail::walk(module, "", visit);
}

/// One parameter as plain data: what an optimiser, a bucket or a file needs. `data` lies in the
/// memory of its device, which `values` and `assign` copy from and to.
template <class T>
struct parameter_view {
  std::string name;
  std::vector<std::int64_t> extents;
  T* data;
  std::int64_t count;
  memory* storage;

  std::size_t bytes() const { return std::size_t(count) * sizeof(T); }
  std::vector<std::remove_const_t<T>> values() const {
    std::vector<std::remove_const_t<T>> read(static_cast<std::size_t>(count));
    storage->copy_to_host(read.data(), data, bytes());
    return read;
  }
  /// Throws layout_error unless there are as many values as elements.
  void assign(std::span<T const> values) const {
    if (std::int64_t(values.size()) != count)
      detail::refuse_local_size(name.c_str(), std::int64_t(values.size()), count);
    storage->copy_from_host(data, values.data(), bytes());
  }
};

/// All parameters of a tree by name; all trees of one module list them in the same order.
template <class Module>
auto named_parameters(Module& module) {
  using element = typename Module::template parameter_element<std::is_const_v<Module>>;
  std::vector<parameter_view<element>> views;
  each_parameter(module, [&](std::string const& name, auto& parameter) {
    parameter_view<element> view{
        name, {}, parameter.data(), parameter.size(), parameter.where().storage};
    for (int d = 0; d < std::remove_cvref_t<decltype(parameter)>::rank; ++d)
      view.extents.push_back(parameter.global_extent(d));
    views.push_back(std::move(view));
  });
  return views;
}

/// What every module has in common: its space, its element type, the parameter's element in this
/// role.
template <class Space>
struct module_base {
  using space_type = Space;
  using element = typename Space::element;
  using mesh_type = typename Space::mesh_type;
  template <bool Const>
  using parameter_element =
      std::conditional_t<Const, typename Space::template parameter<c<1>>::element_type const,
                         typename Space::template parameter<c<1>>::element_type>;
};

}  // namespace dtm
