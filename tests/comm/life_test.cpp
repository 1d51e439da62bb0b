// Creation and destruction, thousands of times; worlds made while ranks are late or missing.

#include <dtm/comm/mesh_groups.hpp>

#include <cstdlib>
#include <optional>
#include <thread>

#include "fresh_world.hpp"
#include "support/catch.hpp"
#include "test_mesh.hpp"

using namespace dtm::comm;
using dtm::testing::settings;
using dtm::testing::test_mesh;

TEST_CASE("meshes are made and destroyed without running out of communicators") {
  auto& root = dtm::testing::world();
  char const* const wanted = std::getenv("DTM_MESH_CYCLES");  // MPICH has about 2000 communicators
  int const cycles = wanted ? std::atoi(wanted) : root.size() == 2 ? 2500 : 100;
  double sum = 0;
  for (int i = 0; i < cycles; ++i) {
    test_mesh mesh(root, {"cp0", "cp1"}, {2, root.size() / 2});
    double const one = 1;
    double x = 0;
    mesh.along(1).all_reduce(&one, &x, 1, reduction::sum, {"all_reduce"}).wait();
    sum += x;
    try {
      test_mesh other(root, {"cp0", "cp1"}, {root.size() / 2, 2});
      throw dtm::argument_error("all ranks leave");
    } catch (dtm::argument_error const&) {
    }
  }
  CHECK(sum == 2.0 * cycles);
}

TEST_CASE("fresh worlds are made and destroyed, also after failures") {
  auto& root = dtm::testing::world();
  for (int i = 0; i < 60; ++i) {
    world fresh(root, settings(check_level::signatures));
    if (i % 3 == 0) {
      try {
        fresh.run([&] {
          if (fresh.rank() == i / 3 % fresh.size()) throw dtm::argument_error("planted");
        });
        CHECK(false);
      } catch (dtm::error const&) {
        CHECK(fresh.has_failed());
      }
    } else {
      fresh.run([&] { test_mesh mesh(fresh, {"cp0"}, {fresh.size()}); });
      CHECK(!fresh.has_failed());
    }
  }
}

TEST_CASE("a world whose ranks do not all come is an error, not a hang") {
  auto& root = dtm::testing::world();
  MPI_Comm parent;  // a communicator that this test may spoil
  {
    MPI_Request request;
    MPI_Comm_idup(root.native(), &parent, &request);
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  if (root.rank() != 1) {
    auto const start = clock::now();
    CHECK_THROWS_WITH(world(parent, settings(check_level::cheap, 0.5)),
                      dtm::testing::contains("not every rank of the parent communicator came"));
    CHECK(seconds_since(start) < 1.5);
  }
  dtm::comm::detail::free_at_finalize(parent);
}

TEST_CASE("ranks that come late are waited for") {
  auto& root = dtm::testing::world();
  std::this_thread::sleep_for(std::chrono::milliseconds(100 * root.rank()));
  world fresh(root, settings(check_level::signatures, 2));
  CHECK(fresh.run([&] { return fresh.size(); }) == root.size());
}
