// Communicators are made by all ranks or by none, and end as they should.

#include "device.hpp"

namespace {

using namespace on_device;
using dtm::testing::attempt;
using dtm::testing::outcome;
using dtm::testing::ranks;
using dtm::testing::settings;

int distinct_groups() {  // of more than one rank
  auto const sizes = square();
  return sizes[0] > 1 && sizes[1] > 1 ? 3 : 1;
}

outcome make(dtm::gpu::transport how = dtm::gpu::transport::nccl,
             int number = dtm::testing::rank()) {
  auto const got = attempt(settings(check_level::cheap, 3), [&](world& w) {
    device gpu(w, {"cp0", "cp1"}, square(), how, number);
    array<float> const x(gpu, std::vector<float>{1});
    gpu.along(3).all_reduce(x.data(), x.data(), 1, reduction::sum, {"all_reduce", "x"}).wait();
    CHECK(x.on_host()[0] == float(w.size()));
  });
  return got;
}

}  // namespace

TEST_CASE("one communicator for every set of ranks, finalised and destroyed at the end") {
  stand_in::reset();
  auto const blocks = stand_in::count().live_blocks;
  CHECK(make().text == "");
  CHECK(stand_in::calls("ncclCommInitRankConfig") == distinct_groups());
  CHECK(stand_in::calls("ncclCommInitRank") == 0);
  CHECK(stand_in::calls("ncclCommFinalize") == distinct_groups());
  CHECK(stand_in::calls("ncclCommDestroy") == distinct_groups());
  CHECK(stand_in::calls("ncclCommAbort") == 0);
  CHECK(blocking_calls() == 1);  // cudaFreeHost, of the buffers of the test
  CHECK(stand_in::count().live_blocks == blocks);
}

TEST_CASE("a failure on one rank while communicators are made is everyone's error") {
  struct fault {
    char const* function;
    int nth, code;
    int victim;
    std::string text;
  };
  std::vector<fault> const faults{
      {"ncclGetUniqueId", 1, ncclSystemError, 0, "unhandled system error"},
      {"ncclCommInitRankConfig", 1, ncclInternalError, ranks() - 1, "internal error"},
      {"ncclCommInitRankConfig", distinct_groups(), ncclUnhandledCudaError, 0,
       "unhandled cuda error"},
      {"ncclCommGetAsyncError", 2, ncclSystemError, ranks() - 1, "unhandled system error"},
      {"cudaStreamCreateWithFlags", 2, cudaErrorMemoryAllocation, 0, "out of memory"}};
  for (auto const& f : faults) {
    CAPTURE(f.function, f.nth);
    stand_in::reset();
    auto const blocks = stand_in::count().live_blocks;
    if (dtm::testing::rank() == f.victim) stand_in::fail_call(f.function, f.nth, f.code);
    auto const got = make();
    CAPTURE(got.text);
    CHECK(got.says(f.text));
    CHECK(got.kind ==
          (dtm::testing::rank() == f.victim ? failure_kind::device : failure_kind::peer));
    CHECK(got.seconds < 1.5);
    CHECK(stand_in::count().live_blocks == blocks);
    stand_in::reset();
    CHECK(make().text == "");
  }
}

TEST_CASE("ranks that share a GPU are told to stage by MPI, which then works") {
  if (ranks() == 1) return;
  stand_in::reset();
  auto const got = make(dtm::gpu::transport::nccl, dtm::testing::rank() / 2);
  CAPTURE(got.text);
  CHECK((got.kind == failure_kind::device || got.kind == failure_kind::peer));
  CHECK(got.says("choose transport::staged_mpi"));
  CHECK(got.says("NCCL needs a GPU for every rank"));
  CHECK(got.seconds < 1.5);
  stand_in::reset();
  CHECK(make(dtm::gpu::transport::staged_mpi, 0).text == "");
  CHECK(stand_in::calls("ncclCommInitRankConfig") == 0);
}

TEST_CASE("a spent world makes no communicators") {
  world fresh(dtm::testing::world(), settings(check_level::cheap));
  device gpu(fresh, {"cp0"}, {fresh.size()});
  array<float> const x(gpu, std::vector<float>{1});
  dtm::testing::world().meet({"all have communicators"});
  if (fresh.rank() == 0) fresh.declare_failure("enough");
  auto const expected = dtm::testing::contains("enough");
  auto const add = [&] {
    gpu.along(1).all_reduce(x.data(), x.data(), 1, reduction::sum, {"all_reduce"}).wait();
    gpu.finish();
  };
  CHECK_THROWS_WITH(add(), expected);
  CHECK_THROWS_WITH(add(), expected);
  CHECK_THROWS_WITH(
      cuda_groups(fresh, gpu.mesh, gpu.storage, gpu.compute.native(), dtm::gpu::transport::nccl),
      expected);
}
