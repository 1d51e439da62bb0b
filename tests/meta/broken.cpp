// Cases that are wrong on purpose, each selected by name. The runner has to notice every one of them;
// tests/meta/CMakeLists.txt says what it must answer.

#include "support/catch.hpp"
#include "support/runner.hpp"

#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

using dtm::testing::rank;
using dtm::testing::ranks;

/// Every rank waits for every other, as in any collective.
static void meet() {
  dtm::testing::world().meet({"meet"});
}

TEST_CASE("passes", "[.]") {
  meet();
  CHECK(rank() < ranks());
  SECTION("one way") {
    CHECK(ranks() > 0);
  }
  SECTION("another way") {
    meet();
    CHECK(ranks() > 0);
  }
}

TEST_CASE("a REQUIRE fails on rank 1", "[.]") {
  REQUIRE(rank() != 1);
  meet();
}

TEST_CASE("an exception on the last rank", "[.]") {
  if (rank() == ranks() - 1) throw std::runtime_error("out of thread");
  meet();
}

TEST_CASE("a CHECK fails on rank 2", "[.]") {
  CHECK(rank() != 2);
  meet();
}

TEST_CASE("a CHECK fails on rank 0", "[.]") {
  CHECK(rank() != 0);
  meet();
}

TEST_CASE("a REQUIRE fails on rank 1 before the sections", "[.]") {
  REQUIRE(rank() != 1);
  SECTION("first") {
    meet();
  }
  SECTION("second") {
    meet();
  }
}

TEST_CASE("a REQUIRE fails on rank 1 in the first section", "[.]") {
  SECTION("first") {
    REQUIRE(rank() != 1);
    meet();
  }
  SECTION("second") {
    meet();
  }
}

TEST_CASE("a REQUIRE fails on rank 1 and nobody waits", "[.]") {
  SECTION("first") {
    REQUIRE(rank() != 1);
  }
  SECTION("second") {
    CHECK(true);
  }
  SECTION("third") {
    meet();
  }
}

TEST_CASE("sections that only rank 0 has", "[.]") {
  SECTION("all") {
    CHECK(true);
  }
  if (rank() == 0) {
    SECTION("one") {
      CHECK(true);
    }
    SECTION("two") {
      CHECK(true);
    }
  }
}

TEST_CASE("rank 1 never arrives", "[.]") {
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  meet();
}

TEST_CASE("rank 0 never arrives", "[.]") {
  if (rank() == 0) std::this_thread::sleep_for(std::chrono::hours(1));
  CHECK(true);
}

TEST_CASE("exit(0) on rank 1", "[.]") {
  if (rank() == 1) std::exit(0);
  meet();
}

TEST_CASE("_exit(0) on rank 1", "[.]") {
  if (rank() == 1) _exit(0);
  meet();
}

TEST_CASE("a segmentation fault on rank 1", "[.]") {
  int volatile* volatile nowhere = nullptr;
  if (rank() == 1) *nowhere = 1;
  meet();
}

TEST_CASE("an abort on rank 1", "[.]") {
  if (rank() == 1) std::abort();
  meet();
}

TEST_CASE("blocks in MPI", "[.]") {
  CHECK(true);
  if (rank() != 1) MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
}

TEST_CASE("all ranks fail", "[.]") {
  REQUIRE(ranks() < 0);
}

TEST_CASE("skips", "[.]") {
  dtm::testing::skip("no file for it");
}

TEST_CASE("one assertion more on rank 0", "[.]") {
  CHECK(true);
  if (rank() == 0) CHECK(true);
}
