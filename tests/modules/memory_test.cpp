// Memory of the part that grows with N^2 falls as 1/P: what is kept, and the peaks of both
// directions, on worlds of one, four and nine ranks made from one world of nine. 36 channels divide
// by all of them. What does not grow with N, such as the workspace of a tile of rows, falls out of the
// difference between two sizes.

#include <mpi.h>

#include <algorithm>

#include "dtm/modules/distogram_module.hpp"
#include "dtm/modules/transition.hpp"
#include "triangle_multiplication.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

constexpr std::int64_t channels = 36;

struct measured {
  double saved = 0, forward_peak = 0, backward_peak = 0;
};

/// The most that a rank needs on a side x side mesh of the first ranks; zero on the others.
template <class Module>
measured on_square(int side, std::int64_t n, comm::transport how) {
  int const wanted = side * side;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(world().native(), rank() < wanted ? 0 : MPI_UNDEFINED, rank(), &part);
  measured result;
  if (part == MPI_COMM_NULL) return result;
  {
    comm::world ranks(part);
    context<host, grid>::options options;
    options.transport = how;
    context<host, grid> ctx(ranks, {1, side, side}, 0, options);
    Module module(ctx);
    auto const bound = extents{bind<batch>(1), bind<tokens>(n)};
    parity_plan const plan;
    parity_run<context<host, grid>, Module, std::remove_const_t<decltype(bound)>> run(ctx, module,
                                                                                      bound, plan);
    (void)run.measured_run();
    CHECK(run.report.failures.empty());
    double mine[] = {double(run.report.saved_bytes), double(run.report.forward_peak_bytes),
                     double(run.report.backward_peak_bytes)};
    double most[3];
    everyone(ctx)
        .all_reduce(mine, most, 3, comm::reduction::max, comm::call{"all_reduce", "memory"})
        .wait();
    result = {most[0], most[1], most[2]};
  }
  MPI_Comm_free(&part);
  return result;
}

constexpr std::int64_t smaller = 72, larger = 144;

template <class Module>
measured growth_on_square(int side, comm::transport how) {
  measured const from = on_square<Module>(side, smaller, how),
                 to = on_square<Module>(side, larger, how);
  return {to.saved - from.saved, to.forward_peak - from.forward_peak,
          to.backward_peak - from.backward_peak};
}

/// Pair tiles that are there at a peak only because they travel, where there is more than one rank.
struct in_flight {
  double forward = 0, backward = 0;
};

template <class Module>
void falls_with_the_mesh(char const* name, comm::transport how, in_flight travel) {
  measured const one = growth_on_square<Module>(1, how), four = growth_on_square<Module>(2, how),
                 nine = growth_on_square<Module>(3, how);
  if (rank() > 0) return;
  double const unit = double(larger * larger - smaller * smaller) * channels * 8;
  std::printf(
      "%s, %s: pair tiles at P = 1, 4, 9: kept %.2f %.2f %.2f  peak forward %.2f %.2f %.2f  "
      "backward "
      "%.2f %.2f %.2f\n",
      name, comm::name(how), one.saved / unit, 4 * four.saved / unit, 9 * nine.saved / unit,
      one.forward_peak / unit, 4 * four.forward_peak / unit, 9 * nine.forward_peak / unit,
      one.backward_peak / unit, 4 * four.backward_peak / unit, 9 * nine.backward_peak / unit);
  auto const falls = [&](double measured::*member, double travels) {
    double const expected = one.*member + travels * unit;
    CHECK(4 * four.*member == Approx(expected).epsilon(0.1));
    CHECK(9 * nine.*member == Approx(expected).epsilon(0.1));
  };
  falls(&measured::saved, 0);
  falls(&measured::forward_peak, travel.forward);
  falls(&measured::backward_peak, travel.backward);
}

/// Ranks that read each other's tiles need not keep what travels, but for copies of operands that a
/// ring's shifts make.
template <class Module>
void falls_by_either_transport(char const* name, in_flight messages = {}, in_flight shared = {}) {
  falls_with_the_mesh<Module>(name, comm::transport::messages, messages);
  falls_with_the_mesh<Module>(name, comm::transport::shared_memory, shared);
}

using fp64 = space<double, grid>;

}  // namespace

TEST_CASE("triangle multiplication by all-to-all") {
  falls_by_either_transport<triangle_multiplication<outgoing, fp64, channels>>(
      "triangle_multiplication, channel_all_to_all", {0, 2});
}
TEST_CASE("triangle multiplication by cannon") {
  falls_by_either_transport<triangle_multiplication<outgoing, fp64, channels, cannon>>(
      "triangle_multiplication, cannon", {1, 1}, {1, 1});
}
TEST_CASE("transition") {
  falls_by_either_transport<transition<fp64, channels, 2 * channels>>("transition");
}
TEST_CASE("distogram head") {
  falls_by_either_transport<distogram_module<fp64, channels, 32>>("distogram_module");
}
