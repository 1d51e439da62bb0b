// Provokes one error of each kind on two ranks and prints what rank 0 is told, for docs/errors.md.

#include "dtm/comm/agreement.hpp"
#include "dtm/comm/environment.hpp"
#include "dtm/dtm.hpp"
#include "dtm/host.hpp"
#include "dtm/io/agreement.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace dtm;

namespace {

using grid = mesh<dp, cp0, cp1>;
using pair = pair_tensor<space<float, grid>, c<8>>;
using single = single_tensor<space<float, grid>, c<8>>;  // replicated on cp1
using context_type = context<host, grid>;
auto extent(std::int64_t n) {
  return extents{bind<batch>(1), bind<tokens>(n)};
}

/// One mistake each.
std::map<std::string, std::function<void(comm::world&)>> const mistakes{
    {"layout_error",
     [](comm::world& world) {
       context_type ctx(world, {1, 1, 2});
       pair z(ctx, extent(229));
     }},
    {"mesh_error",
     [](comm::world& world) {
       context_type ctx(world, {1, 2, 2});
     }},
    {"collective_mismatch",
     [](comm::world& world) {
       context_type ctx(world, {1, 1, 2});
       pair z(ctx, extent(4));
       if (world.rank() == 0)
         (void)apply<all_gather<cp1>>(ctx, z, "z");
       else
         (void)apply<transpose<cp0, cp1>>(ctx, z, "z");
     }},
    {"deadline_exceeded",
     [](comm::world& world) {
       context_type ctx(world, {1, 1, 2});
       pair z(ctx, extent(4));
       if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
       (void)apply<all_gather<cp1>>(ctx, z, "z");
     }},
    {"peer_failed",
     [](comm::world& world) {
       context_type ctx(world, {1, 1, 2});
       pair z(ctx, extent(4));
       if (world.rank() == 1) throw std::runtime_error("no space left");
       (void)apply<all_gather<cp1>>(ctx, z, "z");
     }},
    {"replication_error",
     [](comm::world& world) {
       context_type ctx(world, {1, 1, 2});
       std::vector<float> const block(4 * 8, world.rank() == 1 ? 0.5f : 0.25f);
       (void)from_local<single::layout_type>(ctx, block.data(), 4 * 8, {{1, 4, 8}});
     }},
    {"file_error",
     [](comm::world& world) { (void)io::open_on_all_ranks(world, "weights.safetensors"); }},
    {"memory_error",
     [](comm::world& world) {
       context_type::options chosen;
       chosen.arena_limit = std::size_t(32) << 20;
       context_type ctx(world, {1, 1, 2}, 0, chosen);
       auto const tag = ctx.memory().tagged("forward");
       pair z(ctx, extent(2048));
     }},
    {"argument_error",
     [](comm::world&) {
       setenv("DTM_CHECK_LEVEL", "high", 1);
       (void)comm::options::from_environment();
     }},
};

}  // namespace

int main(int argc, char** argv) {
  comm::environment mpi(argc, argv);
  comm::options settings;
  settings.level = comm::check_level::data;
  settings.deadline_seconds = 2;
  comm::world world(MPI_COMM_WORLD, settings);
  auto const mistake = mistakes.find(argc > 1 ? argv[1] : "");
  if (mistake == mistakes.end()) return 2;
  try {
    world.run([&] { mistake->second(world); });
  } catch (error const& e) {
    if (world.rank() == 0) std::printf("%s\n", e.what());
    return 0;
  } catch (std::exception const&) {  // the rank that threw something else
    return world.rank() == 0;
  }
  return 1;
}
