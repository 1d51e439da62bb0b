// Counts beyond 2^31, without the memory for them: the MPI functions are replaced here by ones that
// only write down what they were asked for.

#include <dtm/comm/group.hpp>

#include "support/catch.hpp"

using namespace dtm::comm;

namespace {
std::int64_t const beyond_int[] = {(std::int64_t(1) << 31) - 1, std::int64_t(1) << 31,
                                   (std::int64_t(1) << 31) + 1, std::int64_t(1) << 33};
std::vector<std::int64_t> asked;
}  // namespace

#if MPI_VERSION >= 4
namespace {
int note(MPI_Count count, MPI_Request* request) {
  asked.push_back(count);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
}  // namespace

extern "C" {
int MPI_Iallreduce_c(void const*, void*, MPI_Count count, MPI_Datatype, MPI_Op, MPI_Comm,
                     MPI_Request* r) {
  return note(count, r);
}
int MPI_Iallgather_c(void const*, MPI_Count, MPI_Datatype, void*, MPI_Count count, MPI_Datatype,
                     MPI_Comm, MPI_Request* r) {
  return note(count, r);
}
int MPI_Ialltoall_c(void const*, MPI_Count, MPI_Datatype, void*, MPI_Count count, MPI_Datatype,
                    MPI_Comm, MPI_Request* r) {
  return note(count, r);
}
int MPI_Ibcast_c(void*, MPI_Count count, MPI_Datatype, int, MPI_Comm, MPI_Request* r) {
  return note(count, r);
}
int MPI_Isend_c(void const*, MPI_Count count, MPI_Datatype, int, int, MPI_Comm, MPI_Request* r) {
  return note(count, r);
}
int MPI_Irecv_c(void*, MPI_Count count, MPI_Datatype, int, int, MPI_Comm, MPI_Request* r) {
  return note(count, r);
}
int MPI_Ialltoallv_c(void const*, MPI_Count const* counts, MPI_Aint const* offsets, MPI_Datatype,
                     void*, MPI_Count const*, MPI_Aint const*, MPI_Datatype, MPI_Comm,
                     MPI_Request* r) {
  asked.push_back(counts[0]);
  return note(offsets[1], r);
}
}

TEST_CASE("MPI is asked for exactly the count of the caller, beyond 2^31 too") {
  auto const real = mpi::datatype_of<double>();
  for (auto count : beyond_int) {
    asked.clear();
    mpi::all_reduce(nullptr, count, real, reduction::sum, MPI_COMM_SELF);
    mpi::all_gather(nullptr, count, real, MPI_COMM_SELF);
    mpi::all_to_all(nullptr, count, real, MPI_COMM_SELF);
    mpi::broadcast(nullptr, count, real, 0, MPI_COMM_SELF);
    mpi::send(nullptr, count, real, 0, 1, MPI_COMM_SELF);
    mpi::receive(nullptr, count, real, 0, 1, MPI_COMM_SELF);
    std::int64_t const counts[] = {count, 3};
    mpi::all_to_all(nullptr, mpi::blocks(counts, real), nullptr, mpi::blocks(counts, real), real,
                    MPI_COMM_SELF);
    CHECK(asked == std::vector<std::int64_t>(8, count));
  }
}

TEST_CASE("16-bit elements travel as bytes, twice as many") {
  asked.clear();
  mpi::broadcast(nullptr, beyond_int[3], mpi::datatype_of<dtm::bf16>(), 0, MPI_COMM_SELF);
  CHECK(asked == std::vector<std::int64_t>{2 * beyond_int[3]});
}
#endif

TEST_CASE("the one conversion of counts is exact or refuses") {
  CHECK(mpi::checked_count<int>(beyond_int[0]) == 2147483647);
  CHECK_THROWS_AS(mpi::checked_count<int>(beyond_int[1]), dtm::argument_error);
  CHECK_THROWS_AS(mpi::checked_count<int>(beyond_int[3]), dtm::argument_error);
  CHECK_THROWS_AS(mpi::checked_count<int>(-1), dtm::argument_error);
  CHECK(mpi::checked_count<std::int64_t>(beyond_int[3]) == beyond_int[3]);
  CHECK_THROWS_WITH(mpi::checked_count<int>(beyond_int[1], "offset"),
                    dtm::testing::contains("offset 2147483648 does not fit"));
}

TEST_CASE("products and sums of counts do not wrap") {
  CHECK(mpi::checked_product(beyond_int[3], 8) == std::int64_t(1) << 36);
  CHECK_THROWS_AS(mpi::checked_product(std::int64_t(1) << 60, 8), dtm::argument_error);
  CHECK_THROWS_AS(mpi::checked_product(-1, 8), dtm::argument_error);
  std::int64_t const counts[] = {beyond_int[1], beyond_int[3], 1};
  CHECK(mpi::packed_offsets(counts) ==
        std::vector<std::int64_t>{0, beyond_int[1], beyond_int[1] + beyond_int[3],
                                  beyond_int[1] + beyond_int[3] + 1});
  std::int64_t const wraps[] = {std::int64_t(1) << 62, std::int64_t(1) << 62, 0};
  CHECK_THROWS_AS(mpi::packed_offsets(wraps), dtm::argument_error);
}

TEST_CASE("the ledger counts bytes in 64 bits") {
  ledger book;
  for (auto count : beyond_int)
    book.entries.push_back({"shift", "cp0", "", count, 8, count, 0, "", 0});
  CHECK(book.sent_elements() == (std::int64_t(3) << 31) + (std::int64_t(1) << 33));
  CHECK(book.sent_bytes() == 8 * book.sent_elements());
}
