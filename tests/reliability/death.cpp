// A process that dies in the middle of its work: death kill|segfault|abort|exit|throw. Without a
// test runner, since the question is what becomes of an ordinary program.

#include <dtm/comm/environment.hpp>
#include <dtm/comm/mesh_groups.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "comm/test_mesh.hpp"

namespace {

void die(std::string const& how) {
  if (how == "throw") throw std::runtime_error("planted");
  std::printf("rank 1 dies by %s\n", how.c_str());
  std::fflush(stdout);
  usleep(100'000);  // the launcher forwards what a rank has written
  if (how == "kill") std::raise(SIGKILL);
  if (how == "segfault") std::raise(SIGSEGV);
  if (how == "abort") std::abort();
  std::_Exit(3);
}

}  // namespace

int main(int argc, char** argv) {
  std::string const how = argc > 1 ? argv[1] : "";
  dtm::comm::environment mpi(argc, argv);
  dtm::comm::world world(MPI_COMM_WORLD);
  try {
    world.run([&] {
      dtm::testing::test_mesh mesh(world, {"cp0"}, {world.size()});
      for (int step = 0; step < 100'000; ++step) {
        if (step == 50 && world.rank() == 1) die(how);
        double x = 1;
        mesh.along(1).all_reduce(&x, &x, 1, dtm::comm::reduction::sum, {"all_reduce", "x"}).wait();
      }
    });
  } catch (std::exception const& e) {
    std::string const text = e.what();
    std::printf("rank %d ends: %s\n", world.rank(), text.substr(0, text.find('\n')).c_str());
    return 1;
  }
  std::printf("rank %d outlived rank 1\n", world.rank());
}
