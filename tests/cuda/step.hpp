#pragma once
// A module with its parameters, an input and an upstream gradient on a device, filled alike on
// every device from numbers; one step is forward and backward.

#include <utility>

#include "dtm/modules/transition.hpp"
#include "dtm/parameters/walk.hpp"
#include "on_gpu.hpp"

namespace dtm::testing {

template <class Tensor>
void fill(Tensor& x, unsigned seed) {
  x.copy_from_host(numbers<typename Tensor::element_type>(x.size(), seed).data());
}
template <class Tensor>
auto values_of(Tensor const& x) {
  std::vector<typename Tensor::element_type> values(std::size_t(x.size()));
  x.copy_to_host(values.data());
  return values;
}

template <class Device, class T>
struct transition_step {
  using module_type = transition<space<T, grid, Device>, 8, 24>;
  using X = pair_tensor<space<T, grid, Device>, c<8>>;
  using context_type = context<Device, grid>;

  context_type& ctx;
  module_type module;
  X x;
  cotangent_t<X> dy;
  gradients_of_t<module_type> gradients;
  X y;
  cotangent_t<X> dx;

  explicit transition_step(context_type& where)
      : ctx(where),
        module(where),
        x(where, extents{bind<batch>(1), bind<tokens>(6)}),
        dy(where, x.global()),
        gradients(where),
        y(where, x.global()),
        dx(where, x.global()) {
    unsigned seed = 0;
    fill(x, ++seed);
    fill(dy, ++seed);
    each_parameter(module, [&](auto const&, auto& p) { fill(p, ++seed); });
    each_parameter(gradients, [&](auto const&, auto& g) { fill(g, 0); });
  }

  /// Gradients add up over steps.
  void operator()() {
    auto result = module.forward(ctx, x);
    dx = module.backward(ctx, std::move(result.saved), dy, gradients);
    y = std::move(result.y);
  }

  /// Everything that it computes, as one vector.
  std::vector<T> results() {
    std::vector<T> all = values_of(y);
    auto const append = [&](auto const& tensor) {
      for (auto value : values_of(tensor)) all.push_back(T(value));
    };
    append(dx);
    each_parameter(gradients, [&](auto const&, auto& g) { append(g); });
    return all;
  }
};

}  // namespace dtm::testing
