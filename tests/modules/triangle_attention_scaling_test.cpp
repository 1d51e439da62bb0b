// The error of triangle attention with 16-bit storage does not grow with the number of ranks: P = 1, 2,
// 3, 4, 6 and 9 ranks made from one world of nine, the same input, against the serial module in fp64.

#include <mpi.h>

#include <cmath>
#include <vector>

#include "triangle_attention.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

constexpr std::int64_t channels = 16, heads = 2, width = 8, n = 36;

struct errors {
  double y = 0, dx = 0;
};

double relative(serial::array<double> const& got, serial::array<double> const& wanted) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    difference += std::pow(got.values[i] - wanted.values[i], 2);
    size += std::pow(wanted.values[i], 2);
  }
  return std::sqrt(difference / size);
}

template <class Node, class Schedule>
errors on_mesh(int rows, int columns) {
  using S = space<bf16, grid>;
  using module_type = triangle_attention<Node, S, channels, heads, width, Schedule>;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(world().native(), rank() < rows * columns ? 0 : MPI_UNDEFINED, rank(), &part);
  errors result;
  if (part == MPI_COMM_NULL) return result;
  {
    comm::world ranks(part);
    context<host, grid> ctx(ranks, {1, rows, columns});
    module_type module(ctx);
    serial::triangle_attention<double> reference(serial_node<Node>, channels, width, heads);
    module.infinity = reference.infinity = large_infinity;
    auto const parameters = serial::named_parameters(reference);
    std::size_t at = 0;
    each_parameter(module, [&](std::string const& name, auto& parameter) {
      fill(parameter, draw_activation, key_of(1, name));
      parameters[at].values->values =
          fill_whole(parameter, draw_activation, key_of(1, name)).values;
      ++at;
    });
    auto const bound = extents{bind<batch>(1), bind<tokens>(n)};
    typename module_type::X x(ctx, bound), dy(ctx, bound);
    typename module_type::Mask mask(ctx, bound);
    auto const drawn = [](auto& tensor, draw_function const& draw, std::uint64_t key) {
      fill(tensor, draw, key);
      return fill_whole(tensor, draw, key);
    };
    auto const whole_x = drawn(x, draw_activation, 2), whole_dy = drawn(dy, draw_activation, 3),
               whole_mask = drawn(mask, draw_binary_mask, 4);
    auto made = module.forward(ctx, x, mask);
    auto gradients = zero_gradients(ctx, module);
    auto const dx = module.backward(ctx, std::move(made.saved), dy, gradients);
    auto const expected = reference.forward(whole_x, whole_mask);
    auto serial_gradients = serial::zero_gradients(reference);
    auto const expected_dx = reference.backward(expected.kept, whole_dy, serial_gradients);
    result = {relative(full_tensor(ctx, made.y), expected.y),
              relative(full_tensor(ctx, dx), expected_dx)};
  }
  MPI_Comm_free(&part);
  return result;
}

template <class Node, class Schedule>
void does_not_grow(std::vector<std::vector<int>> const& meshes) {
  errors const one = on_mesh<Node, Schedule>(1, 1);
  for (auto const& sizes : meshes) {
    errors const many = on_mesh<Node, Schedule>(sizes[0], sizes[1]);
    if (rank() > 0) continue;
    std::printf(
        "triangle_attention %s bf16 on %d x %d: y %.2e (%.2e on one rank)  dx %.2e (%.2e)\n",
        Schedule::name, sizes[0], sizes[1], many.y, one.y, many.dx, one.dx);
    CHECK(many.y <= 1.1 * one.y);
    CHECK(many.dx <= 1.1 * one.dx);
  }
}

}  // namespace

TEST_CASE("the error of rows resident does not grow with the ranks") {
  does_not_grow<starting, row_resident>({{1, 2}, {3, 1}, {2, 2}, {2, 3}, {3, 3}});
  does_not_grow<ending, row_resident>({{2, 1}, {1, 3}, {2, 2}, {3, 2}, {3, 3}});
}
TEST_CASE("the error of the ring does not grow with the ranks") {
  does_not_grow<starting, ring>({{2, 2}, {3, 3}});
  does_not_grow<ending, ring>({{2, 2}, {3, 3}});
}
