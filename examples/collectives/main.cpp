// Collectives are steps from one layout to another: mpiexec -n 4 collectives
//
// A pair of N x N tokens goes from blocks to rows and back, to rows over all ranks, and is summed
// over its columns. After each step the program draws which ranks hold which element, checks what
// it holds, and at the end prints what was sent.

#include <dtm/comm/agreement.hpp>
#include <dtm/comm/environment.hpp>
#include <dtm/host.hpp>
#include <dtm/ops/elementwise.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace example {

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;
template <class... P>
using pair = tensor<double, layout<grid, shape<tokens, tokens>, P...>>;
using blocks = pair<replicate, shard<0>, shard<1>>;  // rows over cp0, columns over cp1

/// The element that everybody can recompute.
double element(std::int64_t i, std::int64_t j) {
  return double(100 * i + j);
}

/// Draws the ranks that hold each element of an N x N pair, as digits; nothing is asked of them:
/// the type knows.
template <class X>
void draw(X const& x, std::string const& title) {
  if (x.where().coordinates[1] + x.where().coordinates[2] > 0) return;
  auto const& here = x.where();
  std::int64_t const n = x.global_extent(0);
  std::vector<std::string> holders(std::size_t(n * n));
  for (int rank = 0; rank < here.ranks(); ++rank) {
    int const there[] = {0, rank / here.sizes[2], rank % here.sizes[2]};
    auto const tile = tile_of<typename X::layout_type>(x.global(), here.sizes, there);
    for (std::int64_t i = tile.begin[0]; i < tile.end[0]; ++i)
      for (std::int64_t j = tile.begin[1]; j < tile.end[1]; ++j)
        holders[std::size_t(i * n + j)] += std::to_string(rank);
  }
  std::printf("\n%s\n", title.c_str());
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      std::printf(" %s", holders[std::size_t(i * n + j)].c_str());
    std::printf("\n");
  }
}

/// Whether this rank holds what the layout says.
template <class X>
bool is_right(X const& x) {
  auto const tile = x.tile();
  auto const local = x.to_local();
  for (std::int64_t i = 0; i < local.extent[0]; ++i)
    for (std::int64_t j = 0; j < local.extent[1]; ++j)
      if (local(i, j) != element(tile.begin[0] + i, tile.begin[1] + j)) return false;
  return true;
}

int run(comm::world& world) {
  int rows = 1;
  for (int r = 1; r * r <= world.size(); ++r)
    if (world.size() % r == 0) rows = r;
  context<host, grid> ctx(world, {1, rows, world.size() / rows});
  std::int64_t const n = 2 * world.size();

  blocks z(ctx, extents{bind<tokens>(n)});
  auto const tile = z.tile();
  auto const local = z.to_local();
  for (std::int64_t i = 0; i < local.extent[0]; ++i)
    for (std::int64_t j = 0; j < local.extent[1]; ++j)
      local(i, j) = element(tile.begin[0] + i, tile.begin[1] + j);
  draw(z, "blocks: shard<0> on cp0, shard<1> on cp1");

  // To whole rows and back. Both results are declared by their types; auto would do.
  pair<replicate, shard<0>, replicate> const bands = apply<all_gather<cp1>>(ctx, z, "z");
  draw(bands, "all_gather<cp1>: rows of a band on each of its ranks");
  blocks const again = apply<all_slice<cp1, 1>>(ctx, bands);
  comm::agree(world, is_right(bands) && is_right(again), "a gathered row is wrong");

  // Whole rows without a copy: each rank has some. Two axes shard one dimension, cp0 is the major
  // one.
  pair<replicate, shard<0>, shard<0>> const whole_rows =
      apply<all_to_all<move<cp1, 0>>>(ctx, z, "z");
  draw(whole_rows, "all_to_all<move<cp1, 0>>: every row on one rank");
  comm::agree(world, is_right(whole_rows), "an exchanged row is wrong");

  // Which axis shards which dimension, swapped: blocks of the columns.
  pair<replicate, shard<1>, shard<0>> const turned = apply<transpose<cp0, cp1>>(ctx, z, "z");
  draw(turned, "transpose<cp0, cp1>: columns on cp0, rows on cp1");
  comm::agree(world, is_right(turned), "a transposed block is wrong");

  // A sum over columns that cp1 shards is a term on each of its coordinates, and says so in its
  // type.
  auto const terms = sum_over<1>(ctx, z);
  static_assert(std::is_same_v<decltype(terms)::layout_type,
                               layout<grid, shape<tokens>, replicate, shard<0>, partial<sum>>>);
  auto const sums =
      apply<all_reduce<cp1>>(ctx, terms, "row sums");  // everybody of a band needs them
  auto const pieces =
      apply<reduce_scatter<cp1, 0>>(ctx, terms, "row sums");  // or each a part: half the volume
  auto right = [&](auto const& x) {
    for (std::int64_t i = 0; i < x.size(); ++i)
      if (x.data()[i] != double(n) * element(x.tile().begin[0] + i, 0) + double(n * (n - 1) / 2))
        return false;
    return true;
  };
  comm::agree(world, right(sums) && right(pieces), "a sum is wrong");

  if (world.rank() == 0) {
    std::printf("\nsent by rank 0, in elements of 8 bytes (it holds %d of z)\n", int(z.size()));
    for (auto const& entry : ctx.ledger().entries)
      std::printf("  %-15s %-8s %-9s %4d\n", entry.operation.c_str(), entry.axes.c_str(),
                  entry.tensor.c_str(), int(entry.sent_elements));
  }
  return 0;
}

}  // namespace example

int main(int count, char** values) {
  dtm::comm::environment mpi(count, values);
  try {
    dtm::comm::world world(MPI_COMM_WORLD);
    return world.run([&] { return example::run(world); });
  } catch (std::exception const& fault) {
    std::fprintf(stderr, "collectives: %s\n", fault.what());
    return 1;
  }
}
