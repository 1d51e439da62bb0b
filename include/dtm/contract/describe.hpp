#pragma once
// A contract in words: the rows of docs/module_map.md and of reports. Built from the types alone;
// include it in one translation unit, the strings cost compile time.

#include <cstdint>
#include <string>

#include "dtm/contract/contract.hpp"

namespace dtm {

namespace detail {

template <class P>
std::string placement_text() {
  if constexpr (is_shard<P>)
    return "S" + std::to_string(shard_dimension<P>);
  else if constexpr (is_replicate<P>)
    return "R";
  else if constexpr (std::is_same_v<P, partial<sum>>)
    return "P(sum)";
  else
    return "P(max)";
}

template <class D>
std::string dimension_text() {
  if constexpr (plane_channels < D >> 0)
    return "planes " + std::to_string(plane_channels<D>);
  else if constexpr (D::static_extent > 0 && !requires { D::letter; })
    return std::to_string(D::static_extent);
  else
    return D::letter.characters;
}

template <class... D>
std::string shape_text(shape<D...>*) {
  std::string text;
  ((text += (text.empty() ? "" : ", ") + dimension_text<D>()), ...);
  return "[" + text + "]";
}

template <class Mesh, class Shape, class... P>
std::string layout_text(layout<Mesh, Shape, P...>*) {
  std::string text = shape_text(static_cast<Shape*>(nullptr));
  int axis = 0;
  ((text += std::string(" ") + Mesh::axis_name(axis++) + ":" + placement_text<P>()), ...);
  return text;
}

template <class Collective>
struct collective_text;
template <class... Axis>
struct collective_text<all_reduce<Axis...>> {
  static constexpr char const* operation = "all_reduce";
  static constexpr char const* of = " ";
  static std::string axes() {
    std::string text;
    ((text += (text.empty() ? "" : "*") + std::string(Axis::name.characters)), ...);
    return text;
  }
};
template <class... Move>
struct collective_text<all_to_all<Move...>> : collective_text<all_reduce<typename Move::axis...>> {
  static constexpr char const* operation = "all_to_all";
};
template <class A, class B>
struct collective_text<transpose<A, B>> : collective_text<all_reduce<A, B>> {
  static constexpr char const* operation = "transpose";
};
template <class Axis>
struct collective_text<all_gather<Axis>> : collective_text<all_reduce<Axis>> {
  static constexpr char const* operation = "all_gather";
};
template <class Axis, int D>
struct collective_text<reduce_scatter<Axis, D>> : collective_text<all_reduce<Axis>> {
  static constexpr char const* operation = "reduce_scatter";
};
template <class Axis>
struct collective_text<ring_shift<Axis>> : collective_text<all_reduce<Axis>> {
  static constexpr char const* operation = "ring_shift";
};
template <class Axis>
struct collective_text<broadcast<Axis>> : collective_text<all_reduce<Axis>> {
  static constexpr char const* operation = "broadcast";
};

template <class Collective>
struct collective_text<by_panels<Collective>> : collective_text<Collective> {
  static constexpr char const* of = " by panels of ";
};

template <class... Named, template <class...> class List>
std::string tensors_text(List<Named...>*, std::string const& separator) {
  std::string text;
  ((text += (text.empty() ? "" : separator) + std::string("`") + Named::name::name + "` " +
            element_name<typename Named::type::element_type>() + " " +
            layout_text(static_cast<typename Named::type::layout_type*>(nullptr))),
   ...);
  return text.empty() ? "none" : text;
}

template <class... Name, class... Collective>
std::string collectives_text(collectives<on_tensor<Name, Collective>...>*,
                             std::string const& separator) {
  std::string text;
  ((text += (text.empty() ? "" : separator) + std::string(collective_text<Collective>::operation) +
            "(" + collective_text<Collective>::axes() + ")" + collective_text<Collective>::of +
            "`" + Name::name + "`"),
   ...);
  return text.empty() ? "none" : text;
}

}  // namespace detail

/// "fp32 [B, N, N, 128] dp:S0 cp0:S1 cp1:S2"
template <class Tensor>
std::string describe() {
  return std::string(element_name<typename Tensor::element_type>()) + " " +
         detail::layout_text(static_cast<typename Tensor::layout_type*>(nullptr));
}

/// The parts of a module's row.
struct contract_text {
  std::string module, inputs, outputs, forward, backward, saved, budget;
};

template <class Module>
contract_text describe_contract(std::string const& separator = "<br>") {
  using contract = typename Module::contract;
  using budget = typename contract::budget;
  return {Module::tag::name,
          detail::tensors_text(static_cast<typename contract::inputs*>(nullptr), separator),
          detail::tensors_text(static_cast<typename contract::outputs*>(nullptr), separator),
          detail::collectives_text(static_cast<typename contract::forward*>(nullptr), separator),
          detail::collectives_text(static_cast<typename contract::backward*>(nullptr), separator),
          detail::tensors_text(static_cast<typename contract::saved*>(nullptr), separator),
          std::string(budget::budget_class::name) + ", " +
              std::to_string(budget::bytes_per_position) + " B"};
}

}  // namespace dtm
