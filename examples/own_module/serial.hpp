#pragma once
// The same module once more, naively and on whole arrays: what a port is compared with.

#include <dtm/serial/linear.hpp>

#include <cmath>
#include <utility>

namespace example {

template <class T>
struct serial_gated_pair {
  using value_type = T;
  using array = dtm::serial::array<T>;

  dtm::serial::linear<T> proj_a, proj_g;

  serial_gated_pair(std::int64_t cs, std::int64_t cz) : proj_a(cs, cz), proj_g(cs, cz) {}

  struct saved {
    array s;
  };
  struct result {
    array z;
    saved kept;
  };
  static T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }

  result forward(array const& s) const {
    array const a = proj_a.forward(s), g = proj_g.forward(s);
    array z({s.extent(0), s.extent(1), s.extent(1), proj_a.out()});
    for (std::int64_t b = 0; b < z.extent(0); ++b)
      for (std::int64_t i = 0; i < z.extent(1); ++i)
        for (std::int64_t j = 0; j < z.extent(2); ++j)
          for (std::int64_t c = 0; c < z.extent(3); ++c)
            z(b, i, j, c) = a(b, i, c) * sigmoid(g(b, j, c));
    return {std::move(z), {s}};
  }

  array backward(saved const& kept, array const& dz, serial_gated_pair& gradients) const {
    array const a = proj_a.forward(kept.s), g = proj_g.forward(kept.s);
    array da(a.extents), dg(g.extents);
    for (std::int64_t b = 0; b < dz.extent(0); ++b)
      for (std::int64_t i = 0; i < dz.extent(1); ++i)
        for (std::int64_t j = 0; j < dz.extent(2); ++j)
          for (std::int64_t c = 0; c < dz.extent(3); ++c) {
            T const open = sigmoid(g(b, j, c));
            da(b, i, c) += dz(b, i, j, c) * open;
            dg(b, j, c) += dz(b, i, j, c) * a(b, i, c) * open * (1 - open);
          }
    array ds = proj_a.backward(kept.s, da, gradients.proj_a);
    ds += proj_g.backward(kept.s, dg, gradients.proj_g);
    return ds;
  }

  template <class F>
  void each_parameter(F&& f, std::string const& prefix = "") {
    proj_a.each_parameter(f, dtm::serial::dotted(prefix, "proj_a"));
    proj_g.each_parameter(f, dtm::serial::dotted(prefix, "proj_g"));
  }
};

}  // namespace example
