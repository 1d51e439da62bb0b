// What the stand-in for NCCL refuses, reports, and leaves behind.

#include <cmath>

#include "clique.hpp"

using namespace stand_in_test;

namespace {

/// Polls both the stream and the communicator, as the library does, until one of them has news.
ncclResult_t poll(clique const& all, cudaStream_t s) {
  ncclResult_t status = ncclSuccess;
  within(20, [&] {
    bool const done = cudaStreamQuery(s) == cudaSuccess;
    status = all.status();
    return done || status != ncclSuccess;
  });
  return status;
}

/// The last rank does something else than the others: everybody hears of it, and abort frees all.
template <class Usual, class Other>
void check_mismatch(std::string const& usual_text, std::string const& other_text, Usual usual,
                    Other other) {
  INFO(usual_text << " and " << other_text);
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>(8 * std::size_t(ranks()), 1)), y(8 * std::size_t(ranks()));
  bool const odd_one = rank() == ranks() - 1;
  DTM_OK(odd_one ? other(all, s, x.data(), y.data()) : usual(all, s, x.data(), y.data()));
  auto const status = poll(all, s);
  CHECK((status == ncclInvalidUsage || status == ncclRemoteError));
  std::string const text = ncclGetLastError(all);
  CHECK_THAT(text, dtm::testing::contains(usual_text));
  CHECK_THAT(text, dtm::testing::contains(other_text));
  CHECK_THAT(text, dtm::testing::contains("rank " + std::to_string(ranks() - 1) + " "));
  CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  CHECK(ncclAllReduce(x.data(), y.data(), 1, ncclFloat32, ncclSum, all, s) == status);
  everybody.meet();
  all.abort();
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(std::isnan(y.now()[0]));
}

auto all_reduce(std::size_t count, ncclDataType_t type = ncclFloat32, ncclRedOp_t how = ncclSum) {
  return [=](clique& all, cudaStream_t s, float* x, float* y) {
    return ncclAllReduce(x, y, count, type, how, all, s);
  };
}

}  // namespace

TEST_CASE("different operations are reported with both sides") {
  check_mismatch("AllReduce(count 4, float32, sum)", "AllReduce(count 5, float32, sum)",
                 all_reduce(4), all_reduce(5));
  check_mismatch("AllReduce(count 4, float32, sum)", "AllReduce(count 4, int32, sum)",
                 all_reduce(4), all_reduce(4, ncclInt32));
  check_mismatch("AllReduce(count 4, float32, sum)", "AllReduce(count 4, float32, max)",
                 all_reduce(4), all_reduce(4, ncclFloat32, ncclMax));
  check_mismatch("AllReduce(count 4, float32, sum)", "AllGather(count 4, float32)", all_reduce(4),
                 [](clique& all, cudaStream_t s, float* x, float* y) {
                   return ncclAllGather(x, y, 4, ncclFloat32, all, s);
                 });
  auto const broadcast = [](int root) {
    return [root](clique& all, cudaStream_t s, float* x, float* y) {
      return ncclBroadcast(x, y, 4, ncclFloat32, root, all, s);
    };
  };
  check_mismatch("Broadcast(count 4, float32, root 0)", "Broadcast(count 4, float32, root 1)",
                 broadcast(0), broadcast(1));
  check_mismatch("AllReduce(count 4, float32, sum)", "Send(count 4, float32, peer 0)",
                 all_reduce(4), [](clique& all, cudaStream_t s, float* x, float*) {
                   return ncclSend(x, 4, ncclFloat32, 0, all, s);
                 });
}

TEST_CASE("a receive of another size than its send is reported") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(8);
  if (rank() == 0) DTM_OK(ncclSend(x.data(), 4, ncclFloat32, 1, all, s));
  if (rank() == 1) DTM_OK(ncclRecv(x.data(), 8, ncclFloat32, 0, all, s));
  if (rank() < 2) {
    CHECK(poll(all, s) == (rank() == 0 ? ncclRemoteError : ncclInvalidUsage));
    CHECK_THAT(std::string(ncclGetLastError(all)),
               dtm::testing::contains("Recv(count 8, float32, peer 0)"));
    CHECK_THAT(std::string(ncclGetLastError(all)),
               dtm::testing::contains("Send(count 4, float32, peer 1)"));
  }
  everybody.meet();
  all.abort();  // before the memory is freed, which waits for what is queued
}

TEST_CASE("the order of operations counts") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(4);
  std::size_t const first = rank() == 0 ? 1 : 2;
  DTM_OK(ncclAllReduce(x.data(), x.data(), first, ncclFloat32, ncclSum, all, s));
  DTM_OK(ncclAllReduce(x.data(), x.data(), 3 - first, ncclFloat32, ncclSum, all, s));
  CHECK(poll(all, s) != ncclSuccess);
  everybody.meet();
  all.abort();
}

TEST_CASE("a rank that does not come leaves the operation open, and abort ends it") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>{1}), after(std::vector<float>{1});
  if (rank() != 0) {
    DTM_OK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s));
    DTM_OK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s));
    add(s, after.data(), after.data(), 1, 1);
    CHECK(stays_busy(s));
    CHECK(all.status() == ncclSuccess);
    all.abort();
    DTM_OK(cudaStreamSynchronize(s));
    CHECK(std::isnan(x.now()[0]));
    CHECK(after.now()[0] == 2);
  }
  everybody.meet();
}

TEST_CASE("two ranks on one device are refused") {
  fresh const each;
  meeting everybody;
  auto const id = everybody.unique_id();
  DTM_OK(cudaSetDevice(0));
  ncclComm_t comm = nullptr;
  auto const result = ncclCommInitRank(&comm, ranks(), id, rank());
  CHECK(result == ncclInvalidUsage);
  CHECK_THAT(std::string(ncclGetLastError(comm)),
             dtm::testing::contains("Duplicate GPU detected : rank 0 and rank 1 both on CUDA"));
  DTM_OK(ncclCommAbort(comm));
}

TEST_CASE("ranks that expect different sizes, or the same place, are refused") {
  fresh const each;
  meeting everybody;
  DTM_OK(cudaSetDevice(rank()));
  ncclComm_t comm = nullptr;
  auto const sizes = everybody.unique_id();
  CHECK(ncclCommInitRank(&comm, ranks() + (rank() == 1), sizes, rank()) == ncclInvalidArgument);
  CHECK_THAT(std::string(ncclGetLastError(comm)), dtm::testing::contains("expects"));
  DTM_OK(ncclCommAbort(comm));
  auto const places = everybody.unique_id();
  CHECK(ncclCommInitRank(&comm, ranks(), places, 0) == ncclInvalidArgument);
  CHECK_THAT(std::string(ncclGetLastError(comm)), dtm::testing::contains("has come twice"));
  DTM_OK(ncclCommAbort(comm));
  ncclUniqueId empty = {};
  CHECK(ncclCommInitRank(&comm, ranks(), empty, rank()) == ncclInvalidArgument);
}

TEST_CASE("without blocking, whoever does not poll is too early") {
  fresh const each;
  meeting everybody;
  DTM_OK(cudaSetDevice(rank()));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  clique all;
  REQUIRE(ncclCommInitRankConfig(&all.comm, ranks(), everybody.unique_id(), rank(), &config) ==
          ncclInProgress);
  auto const ready = [&] { return within(20, [&] { return all.status() != ncclInProgress; }); };
  stream s;
  array<float> x(std::vector<float>{1}), seen(1);
  REQUIRE(ready());
  REQUIRE(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s) == ncclInProgress);
  DTM_OK(cudaMemcpyAsync(seen.data(), x.data(), 4, cudaMemcpyDeviceToDevice, s));  // too early
  CHECK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s) == ncclInvalidArgument);
  REQUIRE(ready());
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(seen.now()[0] == 1);
  CHECK(x.now()[0] == float(ranks()));
  CHECK(ncclCommFinalize(all) == ncclInProgress);
  REQUIRE(ready());
  CHECK(all.status() == ncclSuccess);
  all.destroy();
}

TEST_CASE("buffers are checked") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(4);
  float host[4] = {};
  auto const reduce = [&](void const* in, void* out, std::size_t count) {
    return ncclAllReduce(in, out, count, ncclFloat32, ncclSum, all, s);
  };
  CHECK(reduce(host, x.data(), 4) == ncclInvalidArgument);
  CHECK_THAT(std::string(ncclGetLastError(all)), dtm::testing::contains("send buffer"));
  CHECK(reduce(x.data(), x.data(), 5) == ncclInvalidArgument);
  CHECK(reduce(x.data(), x.data() + 1, 2) == ncclInvalidArgument);
  CHECK_THAT(std::string(ncclGetLastError(all)), dtm::testing::contains("overlap"));
  CHECK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat16, ncclSum, all, s) == ncclInvalidArgument);
  CHECK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclProd, all, s) == ncclInvalidArgument);
  CHECK(ncclSend(x.data(), 1, ncclFloat32, ranks(), all, s) == ncclInvalidArgument);

  DTM_OK(ncclGroupStart());
  DTM_OK(ncclSend(x.data(), 2, ncclFloat32, rank(), all, s));
  DTM_OK(ncclRecv(x.data() + 1, 2, ncclFloat32, rank(), all, s));
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK_THAT(std::string(ncclGetLastError(all)), dtm::testing::contains("writes what"));
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(stand_in::queued(s) == 0);
  stand_in::fail_call("ncclAllReduce", 1, ncclSystemError);
  CHECK(reduce(x.data(), x.data(), 1) == ncclSystemError);
  CHECK(std::string(ncclGetErrorString(ncclInvalidUsage)).find("invalid usage") == 0);
}

TEST_CASE("a message with a wrong bit gives a wrong sum on the ranks that get it") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>{1});
  if (rank() == 0) stand_in::corrupt_messages(1);  // the first one goes to rank 1
  DTM_OK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK((x.now()[0] == float(ranks())) == (rank() != 1));
}
