#pragma once
// What a test case may ask the runner (tests/support/main.cpp). Every case runs on a fresh world, so that
// a message left behind by a broken case cannot match one of a later case.

#include <string>

#include <dtm/comm/world.hpp>

namespace dtm::testing {

/// The world of the running case: a duplicate of MPI_COMM_WORLD that the runner frees after it. Throws in
/// the remaining sections of a case that already failed somewhere, so that no rank waits for another.
comm::world& world();

/// Rank and size, also where the case needs no world.
int rank();
int ranks();

/// Ends the case here, counted as skipped; all ranks must do so alike. The program then exits with 77.
[[noreturn]] void skip(std::string const& reason);

}  // namespace dtm::testing
