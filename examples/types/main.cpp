// The layout is in the type: mpiexec -n 4 types
//
// Prints which part of a pair and of a single each rank holds, turns a single from row form to
// column form, and shows what the one check says that has to wait for run time: extents that do not
// divide by the mesh.

#include <dtm/comm/environment.hpp>
#include <dtm/host.hpp>

#include <cstdio>
#include <string>

#include "layouts.hpp"

namespace example {

/// Where every rank computes every other's part, rank 0 can print them all.
template <class X>
void print_blocks(X const& x, char const* name) {
  auto const& here = x.where();
  std::printf("%s\n", name);
  for (int rank = 0; rank < here.ranks(); ++rank) {
    int const there[] = {0, rank / here.sizes[2], rank % here.sizes[2]};
    auto const tile = tile_of<typename X::layout_type>(x.global(), here.sizes, there);
    std::printf("  rank %d at cp0=%d, cp1=%d holds", rank, there[1], there[2]);
    for (int d = 0; d < X::rank; ++d) std::printf(" %d:%d", int(tile.begin[d]), int(tile.end[d]));
    std::printf("\n");
  }
}

int run(comm::world& world) {
  int rows = 1;
  for (int r = 1; r * r <= world.size(); ++r)
    if (world.size() % r == 0) rows = r;
  context<host, grid> ctx(world, {1, rows, world.size() / rows});
  int const n = 2 * world.size();

  z_type const z(ctx, extents{bind<batch>(1), bind<tokens>(n)});
  s_type s(ctx, extents{bind<batch>(1), bind<tokens>(n)});
  for (auto& value : s.to_local()) value = 1;

  // Only a collective that is named makes another layout of a tensor.
  auto const column = apply<transpose<cp0, cp1>>(ctx, s, "s");
  if (world.rank() == 0) {
    print_blocks(z, "z [batch, tokens, tokens, 16]");
    print_blocks(s, "s [batch, tokens, 16] in row form");
    print_blocks(column, "s in column form");
  }
  attention_bias(s);
  attention_bias(apply<transpose<cp0, cp1>>(ctx, column,
                                            "column"));  // attention_bias(column) does not compile

  // Extents are run-time values; a constructor checks them, and every rank throws the same.
  if (world.size() == 1) return 0;
  try {
    z_type const uneven(ctx, extents{bind<batch>(1), bind<tokens>(n + 1)});
  } catch (layout_error const& e) {
    if (world.rank() == 0) std::printf("%d tokens do not fit:\n  %s\n", n + 1, e.what());
    return 0;
  }
  return 1;
}

}  // namespace example

int main(int count, char** values) {
  dtm::comm::environment mpi(count, values);
  try {
    dtm::comm::world world(MPI_COMM_WORLD);
    return world.run([&] { return example::run(world); });
  } catch (std::exception const& fault) {
    std::fprintf(stderr, "types: %s\n", fault.what());
    return 1;
  }
}
