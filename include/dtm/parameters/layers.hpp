#pragma once
// The parameter structs that modules are made of: linear (weight, optional bias) and layer_norm
// (weight, bias). The names are torch's.

#include "dtm/parameters/walk.hpp"

namespace dtm {

template <class Space, std::int64_t In, std::int64_t Out>
struct linear_parameters : module_base<Space> {
  using self = linear_parameters;
  template <class S>
  using in = linear_parameters<S, In, Out>;
  using weight_type = typename Space::template parameter<c<Out>, c<In>>;
  BOOST_HANA_DEFINE_STRUCT(self, (weight_type, weight));

  template <class Context>
  explicit linear_parameters(Context& ctx) : weight(ctx, extents{}) {}
};

template <class Space, std::int64_t In, std::int64_t Out>
struct linear_with_bias_parameters : module_base<Space> {
  using self = linear_with_bias_parameters;
  template <class S>
  using in = linear_with_bias_parameters<S, In, Out>;
  using weight_type = typename Space::template parameter<c<Out>, c<In>>;
  using bias_type = typename Space::template parameter<c<Out>>;
  BOOST_HANA_DEFINE_STRUCT(self, (weight_type, weight), (bias_type, bias));

  template <class Context>
  explicit linear_with_bias_parameters(Context& ctx)
      : weight(ctx, extents{}), bias(ctx, extents{}) {}
};

template <class Space, std::int64_t Channels>
struct layer_norm_parameters : module_base<Space> {
  using self = layer_norm_parameters;
  template <class S>
  using in = layer_norm_parameters<S, Channels>;
  using vector_type = typename Space::template parameter<c<Channels>>;
  BOOST_HANA_DEFINE_STRUCT(self, (vector_type, weight), (vector_type, bias));

  template <class Context>
  explicit layer_norm_parameters(Context& ctx) : weight(ctx, extents{}), bias(ctx, extents{}) {}
};

}  // namespace dtm
