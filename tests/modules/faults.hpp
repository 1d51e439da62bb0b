#pragma once
// Planted faults. Each must make the harness report a failure of the right kind; a harness that
// never fails proves nothing.
//
//   faulty_context   the ranks talk wrongly: a reduction without cp1, the neighbour on the other side
//   faulty           the module is wrong: a gradient scaled by P, a transposed tile, a mask ignored

#include <mpi.h>

#include <memory>
#include <optional>

#include "triangle_multiplication.hpp"

namespace dtm::testing {

enum class talk {
  right,
  without_cp1,      // parameter gradients are not summed over cp1
  other_neighbour,  // a ring along cp1 turns the other way
  stale_tile,       // a ring along cp1 gives the own tile back
  exchanged_axes,   // rings along cp0 and cp1 are exchanged
  flag_of_one,      // a reduction over dp and cp0 is left out
  short_sum,        // the second exchange over cp0 and cp1 leaves cp1 out
};

/// A context whose groups may be the wrong ones. The harness itself talks over groups(), which are
/// right.
class faulty_context : public context<host, grid> {
 public:
  faulty_context(comm::world& ranks, std::vector<int> sizes, talk how)
      : context(ranks, sizes), how_(how) {
    if (how != talk::other_neighbour) return;
    // the same mesh with cp1 counted from the other end
    int const columns = sizes[2], column = ranks.rank() % columns;
    MPI_Comm_split(ranks.native(), 0, ranks.rank() - column + (columns - 1 - column), &mirrored_);
    mirror_world_ = std::make_unique<comm::world>(mirrored_);
    mirror_ = std::make_unique<context>(*mirror_world_, sizes);
  }
  ~faulty_context() {
    mirror_.reset();
    mirror_world_.reset();
    if (mirrored_ != MPI_COMM_NULL) MPI_Comm_free(&mirrored_);
  }

  template <class... Axis>
  comm::group& along() {
    if constexpr (std::is_same_v<std::tuple<Axis...>, std::tuple<cp1>>) {
      if (how_ == talk::other_neighbour) return mirror_->along<cp1>();
      if (how_ == talk::stale_tile)
        return groups().along(0);  // a group of one gives its own tile back
      if (how_ == talk::exchanged_axes) return context::along<cp0>();
    } else if constexpr (std::is_same_v<std::tuple<Axis...>, std::tuple<cp0>>) {
      if (how_ == talk::exchanged_axes) return context::along<cp1>();
    } else if constexpr (std::is_same_v<std::tuple<Axis...>, std::tuple<dp, cp0>>) {
      if (how_ == talk::flag_of_one) return groups().along(0);
    } else if constexpr (std::is_same_v<std::tuple<Axis...>, std::tuple<cp0, cp1>>) {
      if (how_ == talk::short_sum && ++exchanges_ == 2) return context::along<cp0>();
    }
    return context::along<Axis...>();
  }
  comm::group& along_all() {
    if (how_ == talk::without_cp1) return context::along<dp, cp0>();
    return context::along_all();
  }

 private:
  using context = dtm::context<host, grid>;
  talk how_;
  int exchanges_ = 0;
  MPI_Comm mirrored_ = MPI_COMM_NULL;
  std::unique_ptr<comm::world> mirror_world_;
  std::unique_ptr<context> mirror_;
};

enum class wrong {
  nothing,
  gradient_scaled,  // by the number of ranks
  transposed_tile,  // rank (i, j) gives the tile of (j, i)
  mask_ignored,
  input_changed,
  parameter_changed,
  message_too_many,
  keeps_too_much,
  another_time,  // other bits in every run
  gradient_assigned,
  input_gradient_adds,  // to what the last call left
  reads_padding,
};

/// Triangle multiplication with one mistake.
template <class Module>
struct faulty : Module {
  using X = typename Module::X;
  using Mask = typename Module::Mask;
  using kept = typename Module::kept;
  using result = typename Module::result;

  template <class Context>
  faulty(Context& ctx, wrong what_) : Module(ctx), what(what_) {}

  wrong what;
  mutable int calls = 0;
  mutable std::optional<X> hoard;

  template <class Context>
  result forward(Context& ctx, X const& x, Mask const& mask) const {
    ++calls;
    if (what == wrong::mask_ignored) {
      auto ones = mask.clone();
      std::fill_n(ones.data(), ones.size(), 1.0);
      return Module::forward(ctx, x, ones);
    }
    if (what == wrong::input_changed) const_cast<X&>(x).data()[0] *= 1 + 1e-15;
    if (what == wrong::parameter_changed && ctx.world().rank() == ctx.world().size() - 1)
      const_cast<double*>(this->p_out.weight.data())[0] *= 1 + 1e-15;
    auto done = Module::forward(ctx, x, mask);
    if (what == wrong::message_too_many) (void)apply<transpose<cp0, cp1>>(ctx, x, "x");
    if (what == wrong::keeps_too_much) hoard = x.clone();
    if (what == wrong::another_time) done.y.data()[0] *= 1 + 1e-15 * calls;
    if (what ==
        wrong::reads_padding)  // in the second sample some tile begins valid and ends padded
      done.y.data()[x.size() / 2] += 1e-14 * x.data()[x.size() - 1];
    if (what == wrong::transposed_tile) {
      auto const across = apply<transpose<cp0, cp1>>(ctx, done.y, "y");
      done.y =
          from_local<typename X::layout_type>(ctx, across.data(), across.size(), across.global());
    }
    return done;
  }

  template <class Context>
  X backward(Context& ctx, kept saved, X const& dy, gradients_of_t<Module>& gradients) const {
    if (what == wrong::gradient_assigned) set_to_zero(gradients);
    auto dx = Module::backward(ctx, std::move(saved), dy, gradients);
    if (what == wrong::gradient_scaled)
      each_parameter(gradients, [&](std::string const&, auto& g) {
        for (std::int64_t i = 0; i < g.size(); ++i) g.data()[i] *= ctx.where().ranks();
      });
    if (what == wrong::input_gradient_adds) {
      if (hoard) add_into(ctx, *hoard, dx);
      hoard = dx.clone();
    }
    return dx;
  }
};

}  // namespace dtm::testing
