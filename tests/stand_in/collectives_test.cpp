// What the stand-in for NCCL computes, and in which order.

#include <dtm/core/element.hpp>

#include <cmath>

#include "clique.hpp"

using namespace stand_in_test;
using dtm::bf16;

namespace {

template <class T>
struct named;
#define DTM_NAMED(T, value)                           \
  template <>                                         \
  struct named<T> {                                   \
    static constexpr ncclDataType_t datatype = value; \
  }
DTM_NAMED(std::int8_t, ncclInt8);
DTM_NAMED(std::uint8_t, ncclUint8);
DTM_NAMED(std::int32_t, ncclInt32);
DTM_NAMED(std::int64_t, ncclInt64);
DTM_NAMED(float, ncclFloat32);
DTM_NAMED(double, ncclFloat64);
DTM_NAMED(bf16, ncclBfloat16);

/// Sums of these are not exact in bfloat16 or float, so that the order shows.
template <class T>
T value(int of, std::size_t i) {
  int const whole = (of * 7 + int(i) * 3 + of * int(i)) % 11;
  if constexpr (std::is_integral_v<T>)
    return T(whole);
  else
    return T(float(whole - 5) * 1.37f + float(of) * 1e-3f);
}

template <class T>
std::vector<T> values(int of, std::size_t count) {
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(value<T>(of, i));
  return all;
}

/// In rank order; of bfloat16 in float, rounded once.
template <class T>
std::vector<T> reduced(ncclRedOp_t how, std::size_t count, std::size_t first = 0) {
  std::vector<T> result;
  for (std::size_t i = first; i < first + count; ++i) {
    auto sum = dtm::accumulate_t<T>(value<T>(0, i));
    for (int r = 1; r < ranks(); ++r) {
      auto const next = dtm::accumulate_t<T>(value<T>(r, i));
      sum = how == ncclSum   ? dtm::accumulate_t<T>(sum + next)
            : how == ncclMax ? std::max(sum, next)
                             : std::min(sum, next);
    }
    result.push_back(T(sum));
  }
  return result;
}

template <class T>
void check_all(clique& all, std::size_t count) {
  auto const n = std::size_t(ranks());
  auto const datatype = named<T>::datatype;
  stream s;
  for (auto how : {ncclSum, ncclMax, ncclMin}) {
    array<T> in(values<T>(rank(), count)), out(count);
    DTM_OK(ncclAllReduce(in.data(), out.data(), count, datatype, how, all, s));
    DTM_OK(ncclAllReduce(in.data(), in.data(), count, datatype, how, all, s));
    DTM_OK(cudaStreamSynchronize(s));
    CHECK(out.now() == reduced<T>(how, count));
    CHECK(in.now() == reduced<T>(how, count));

    array<T> wide(values<T>(rank(), count * n)), part(count);
    DTM_OK(ncclReduceScatter(wide.data(), part.data(), count, datatype, how, all, s));
    DTM_OK(cudaStreamSynchronize(s));
    CHECK(part.now() == reduced<T>(how, count, count * std::size_t(rank())));
  }
  array<T> gathered(count * n), own(values<T>(rank(), count)), sent(values<T>(rank(), count));
  DTM_OK(ncclAllGather(own.data(), gathered.data(), count, datatype, all, s));
  int const root = ranks() / 2;
  DTM_OK(ncclBroadcast(sent.data(), sent.data(), count, datatype, root, all, s));
  DTM_OK(cudaStreamSynchronize(s));
  std::vector<T> everyones;
  for (int r = 0; r < ranks(); ++r)
    for (auto const& v : values<T>(r, count)) everyones.push_back(v);
  CHECK(gathered.now() == everyones);
  CHECK(sent.now() == values<T>(root, count));
}

}  // namespace

TEST_CASE("collectives of all types, at two sizes") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  for (std::size_t count : {std::size_t(1), std::size_t(37)}) {
    check_all<std::int8_t>(all, count);
    check_all<std::uint8_t>(all, count);
    check_all<std::int32_t>(all, count);
    check_all<std::int64_t>(all, count);
    check_all<float>(all, count);
    check_all<double>(all, count);
    check_all<bf16>(all, count);
  }
  int n = 0, r = 0, device = 0, version = 0;
  DTM_OK(ncclCommCount(all, &n));
  DTM_OK(ncclCommUserRank(all, &r));
  DTM_OK(ncclCommCuDevice(all, &device));
  DTM_OK(ncclGetVersion(&version));
  CHECK(n == ranks());
  CHECK(r == rank());
  CHECK(device == rank());
  CHECK(version == NCCL_VERSION_CODE);
  all.destroy();
}

TEST_CASE("nothing moves before somebody waits, and then behind what comes first") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>{1}), y(1);
  add(s, x.data(), x.data(), 1, 1);
  DTM_OK(ncclAllReduce(x.data(), y.data(), 1, ncclFloat32, ncclSum, all, s));
  add(s, x.data(), x.data(), 100, 1);
  CHECK(std::isnan(y.now()[0]));
  CHECK(x.now()[0] == 1);
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(y.now()[0] == 2 * float(ranks()));
  CHECK(x.now()[0] == 102);
}

TEST_CASE("operations of a communicator run in the order of their issue, whatever their streams") {
  for (std::uint64_t seed : {0, 1, 2}) {
    fresh const each;
    stand_in::set_seed(seed == 0 ? 0 : seed * 100 + std::uint64_t(rank()));
    meeting everybody;
    clique all(everybody);
    stream a, b;
    array<float> x(std::vector<float>{1}), y(std::vector<float>{2}), u(1), v(1);
    DTM_OK(ncclAllReduce(x.data(), u.data(), 1, ncclFloat32, ncclSum, all, a));
    DTM_OK(ncclAllReduce(y.data(), v.data(), 1, ncclFloat32, ncclMax, all, b));
    DTM_OK(cudaStreamSynchronize(b));
    DTM_OK(cudaStreamSynchronize(a));
    CHECK(u.now()[0] == float(ranks()));
    CHECK(v.now()[0] == 2);
    CHECK(all.status() == ncclSuccess);
    everybody.meet();
  }
}

TEST_CASE("ranks that wait in different streams do not wait for each other") {
  fresh const each;
  meeting everybody;
  clique first(everybody), second(everybody, ranks() - 1);
  stream a, b;
  array<float> x(std::vector<float>{1}), u(1), v(1);
  DTM_OK(ncclAllReduce(x.data(), u.data(), 1, ncclFloat32, ncclSum, first, a));
  DTM_OK(ncclAllReduce(x.data(), v.data(), 1, ncclFloat32, ncclSum, second, b));
  DTM_OK(cudaStreamSynchronize(rank() % 2 ? a : b));
  DTM_OK(cudaStreamSynchronize(rank() % 2 ? b : a));
  CHECK(u.now()[0] == float(ranks()));
  CHECK(v.now()[0] == float(ranks()));
  first.destroy();
  second.destroy();
}

TEST_CASE("a host that waits in MPI does not hold up the others' streams") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>{1});
  DTM_OK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s));
  if (rank() != 0) DTM_OK(cudaStreamSynchronize(s));
  everybody.meet();  // rank 0 never waits for its stream, the others come here after theirs
  CHECK((rank() == 0 || x.now()[0] == float(ranks())));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now()[0] == float(ranks()));
}

TEST_CASE("a ring in a group") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  int const next = (rank() + 1) % ranks(), previous = (rank() + ranks() - 1) % ranks();
  std::size_t const count = 200'000;  // more than MPI sends on its own account
  array<float> out(std::vector<float>(count, float(rank()))), in(count);
  for (int round = 0; round < 3; ++round) {
    DTM_OK(ncclGroupStart());
    DTM_OK(ncclGroupStart());
    DTM_OK(ncclSend(out.data(), count, ncclFloat32, next, all, s));
    DTM_OK(ncclGroupEnd());
    CHECK(stand_in::queued(s) == std::size_t(round));  // the inner end starts nothing
    DTM_OK(ncclRecv(in.data(), count, ncclFloat32, previous, all, s));
    DTM_OK(ncclGroupEnd());
  }
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(in.now() == std::vector<float>(count, float(previous)));
}

TEST_CASE("all to all in a group, own part included") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  auto const n = std::size_t(ranks());
  std::vector<std::int32_t> mine, theirs;
  for (int peer = 0; peer < ranks(); ++peer) {
    mine.push_back(rank() * 100 + peer);
    theirs.push_back(peer * 100 + rank());
  }
  array<std::int32_t> out(mine), in(n);
  DTM_OK(ncclGroupStart());
  for (int peer = 0; peer < ranks(); ++peer) {
    DTM_OK(ncclSend(out.data() + peer, 1, ncclInt32, peer, all, s));
    DTM_OK(ncclRecv(in.data() + peer, 1, ncclInt32, peer, all, s));
  }
  DTM_OK(ncclGroupEnd());
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(in.now() == theirs);
}

TEST_CASE("collectives and pairs in one group") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  int const next = (rank() + 1) % ranks(), previous = (rank() + ranks() - 1) % ranks();
  array<float> x(std::vector<float>{1}), sum(1), out(std::vector<float>{float(rank())}), in(1);
  DTM_OK(ncclGroupStart());
  if (rank() == 0) DTM_OK(ncclRecv(in.data(), 1, ncclFloat32, previous, all, s));
  DTM_OK(ncclAllReduce(x.data(), sum.data(), 1, ncclFloat32, ncclSum, all, s));
  DTM_OK(ncclSend(out.data(), 1, ncclFloat32, next, all, s));
  if (rank() != 0) DTM_OK(ncclRecv(in.data(), 1, ncclFloat32, previous, all, s));
  DTM_OK(ncclGroupEnd());
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(sum.now()[0] == float(ranks()));
  CHECK(in.now()[0] == float(previous));
}

TEST_CASE("a send on its own waits for its receive") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>{float(rank())});
  int const peer = rank() ^ 1;
  bool const paired = peer < ranks();
  if (paired && rank() % 2 == 0) {
    DTM_OK(ncclSend(x.data(), 1, ncclFloat32, peer, all, s));
    CHECK(stays_busy(s));
  }
  everybody.meet();
  if (paired && rank() % 2 == 1) DTM_OK(ncclRecv(x.data(), 1, ncclFloat32, peer, all, s));
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now()[0] == float(paired ? std::min(rank(), peer) : rank()));
}

TEST_CASE("communicators of some ranks, one after the other") {
  fresh const each;
  meeting everybody;
  for (int round = 0; round < 3; ++round) {
    auto const even = everybody.unique_id(0);
    auto const odd = everybody.unique_id(ranks() > 1 ? 1 : 0);
    int const size = rank() % 2 == 0 ? (ranks() + 1) / 2 : ranks() / 2;
    int const place = size - 1 - rank() / 2;  // not the order of the world
    clique half(rank() % 2 == 0 ? even : odd, size, place);
    stream s;
    array<std::int32_t> mine(std::vector<std::int32_t>{rank()}), all(std::size_t(size) + 0);
    DTM_OK(ncclAllGather(mine.data(), all.data(), 1, ncclInt32, half, s));
    DTM_OK(cudaStreamSynchronize(s));
    for (int r = 0; r < size; ++r)
      CHECK(all.now()[std::size_t(r)] == (size - 1 - r) * 2 + rank() % 2);
    DTM_OK(ncclCommFinalize(half));
    CHECK(ncclAllGather(mine.data(), all.data(), 1, ncclInt32, half, s) == ncclInvalidUsage);
    half.destroy();
  }
}

TEST_CASE("a collective is captured and replayed") {
  fresh const each;
  meeting everybody;
  clique all(everybody);
  stream s;
  array<float> x(std::vector<float>{1});
  DTM_OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  DTM_OK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, all, s));
  add(s, x.data(), x.data(), 1, 1);
  DTM_OK(ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclMax, all, s));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  DTM_OK(cudaStreamEndCapture(s, &graph));
  DTM_OK(cudaGraphInstantiate(&executable, graph, 0));
  float expected = 1;
  for (int i = 0; i < 3; ++i) {
    DTM_OK(cudaGraphLaunch(executable, s));
    expected = expected * float(ranks()) + 1;
  }
  DTM_OK(cudaStreamSynchronize(s));
  CHECK(x.now()[0] == expected);
  DTM_OK(cudaGraphExecDestroy(executable));
  DTM_OK(cudaGraphDestroy(graph));
}
