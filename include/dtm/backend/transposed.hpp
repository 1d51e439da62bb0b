#pragma once
// A context seen by modules that work on transposed pairs: the axes of rows and columns have changed
// places, everything else is the context's. Where z [batch, i, j, C] is placed (shard<1>, shard<2>) on
// (cp0, cp1), its tile with rows and columns swapped is the tile of its transpose, placed
// (shard<1>, shard<2>) on (cp1, cp0): no message is needed, and what is written for rows does columns.
//
//   transposed_context view(ctx);
//   auto transposed = swap_pairs(view, z);  ...  auto y = swap_pairs(ctx, transposed);   (ops/pairs.hpp)
//
// A view refers to the context and must not outlive it. It exchanges along one axis at a time: the
// joint group of two counts its ranks in the order of the context's own mesh.

#include <cstdint>

#include "dtm/core/mesh.hpp"

namespace dtm {

template <class Context>
class transposed_context {
 public:
  using device_type = typename Context::device_type;
  using mesh_type = transposed_mesh_t<typename Context::mesh_type>;

  explicit transposed_context(Context& ctx) : ctx_(ctx), site_(site_on<mesh_type>(ctx.where())) {}

  site<mesh_type> const& where() const { return site_; }
  decltype(auto) world() { return ctx_.world(); }
  decltype(auto) groups() { return ctx_.groups(); }
  decltype(auto) ledger() { return ctx_.ledger(); }
  decltype(auto) memory() { return ctx_.memory(); }
  decltype(auto) device() { return ctx_.device(); }
  std::uint64_t seed() const { return ctx_.seed(); }

  template <class Axis>
  int size() const {
    return ctx_.template size<Axis>();
  }
  template <class Axis>
  int coordinate() const {
    return ctx_.template coordinate<Axis>();
  }
  template <class Axis>
  decltype(auto) along() {
    return ctx_.template along<Axis>();
  }

  template <class Kernel>
  void launch(std::int64_t blocks, Kernel const& kernel) {
    ctx_.launch(blocks, kernel);
  }
  void finish() { ctx_.finish(); }

 private:
  Context& ctx_;
  site<mesh_type> site_;
};

}  // namespace dtm
