#pragma once
// A context without communicators, on a host whose local operations do nothing: what operations ask of
// one when only their types are looked at. Not together with dtm/host.hpp.

#include "dtm/backend/local.hpp"
#include "negative/vocabulary.hpp"

namespace dtm::local {
template <>
struct gemm_impl<host> {
  template <class... Given>
  static void run(Given const&...) {}
};
template <>
struct for_each_impl<host> {
  template <class... Given>
  static void run(Given const&...) {}
};
template <>
struct column_sum_impl<host> {
  template <class... Given>
  static void run(Given const&...) {}
};
template <>
struct square_sum_impl<host> {
  template <class... Given>
  static void run(Given const&...) {}
};
template <>
struct selected_columns_impl<host> {
  template <class... Given>
  static void run(Given const&...) {}
};
template <>
struct layer_norm_impl<host> {
  template <class... Given>
  static void forward(Given const&...) {}
  template <class... Given>
  static void apply(Given const&...) {}
  template <class... Given>
  static void backward(Given const&...) {}
};
}  // namespace dtm::local

template <class Mesh>
struct stand_in {
  using device_type = dtm::host;
  using mesh_type = Mesh;
  site<Mesh> place;
  site<Mesh> const& where() const { return place; }
};
