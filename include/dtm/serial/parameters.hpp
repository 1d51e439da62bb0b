#pragma once
// Walking the parameters of a serial module. Every module has
//
//   template <class F> void each_parameter(F&& f, std::string const& prefix = "");
//
// which calls f(dotted name, array<T>&) for each parameter in the registration order of the
// published serial module. A module's gradients are a module of the same type whose parameters hold
// sums.

#include <string>
#include <vector>

#include "dtm/serial/array.hpp"

namespace dtm::serial {

inline std::string dotted(std::string const& prefix, std::string const& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

/// A parameter or its gradient, seen from outside; the module that owns it must outlive the view.
template <class T>
struct named_array {
  std::string name;
  array<T>* values;
};

/// All parameters of a module in registration order.
template <class Module>
auto named_parameters(Module& module, std::string const& prefix = "") {
  using T = typename Module::value_type;
  std::vector<named_array<T>> result;
  module.each_parameter(
      [&](std::string const& name, array<T>& values) {
        result.push_back({name, &values});
      },
      prefix);
  return result;
}

/// A module of the same shape with all parameters zero: what backward adds gradients to.
template <class Module>
Module zero_gradients(Module const& module) {
  using T = typename Module::value_type;
  Module gradients = module;
  gradients.each_parameter([](std::string const&, array<T>& values) { values.fill(T(0)); });
  return gradients;
}

}  // namespace dtm::serial
