// Planted faults. Each ends on all ranks with the sentence that names it, within the deadline and a
// second, and the next world works.

#include <functional>
#include <thread>

#include "device.hpp"

namespace {

using namespace on_device;
using dtm::testing::attempt;
using dtm::testing::outcome;
using dtm::testing::ranks;
using dtm::testing::settings;

constexpr double deadline = 2;
constexpr std::int64_t count = 100;

using body = std::function<void(world&, device&)>;

outcome on_gpus(check_level level, body const& run, bool grid = false) {
  auto const got = attempt(settings(level, deadline), [&](world& w) {
    device gpu(w, grid ? std::vector<std::string>{"cp0", "cp1"} : std::vector<std::string>{"cp0"},
               grid ? square() : std::vector{w.size()});
    run(w, gpu);
  });
  stand_in::reset();
  return got;
}

void sum(device& gpu, float const* in, float* out, std::int64_t n = count, unsigned mask = 1,
         char const* name = "x") {
  gpu.along(mask).all_reduce(in, out, n, reduction::sum, {"all_reduce", name}).wait();
}

void check_next_world() {
  auto const got = on_gpus(check_level::cheap, [](world& w, device& gpu) {
    array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
    sum(gpu, in.data(), out.data());
    CHECK(out.on_host()[0] == [&] {
      float total = 0;
      for (int r = 0; r < w.size(); ++r) total += value<float>(r, 0);
      return total;
    }());
  });
  CHECK(got.text == "");
}

void check_deadline(outcome const& got) {
  CHECK(got.kind == failure_kind::deadline);
  CHECK(got.says("deadline of 2 s exceeded in "));
  CHECK(got.says("faults_test.cpp:"));
  CHECK(got.seconds < deadline + 1);
}

/// The victim has the error, the others hear of it.
void check_device_error(outcome const& got, int victim, std::string const& text) {
  CAPTURE(got.text);
  CHECK(got.says(text));
  if (dtm::testing::rank() == victim) {
    CHECK(got.kind == failure_kind::device);
  } else {
    CHECK(got.kind == failure_kind::peer);
    CHECK(got.says("rank " + std::to_string(victim) + " failed: "));
  }
  CHECK(got.seconds < 1.5);
}

}  // namespace

TEST_CASE("a rank that skips an operation is waited for until the deadline, and no longer") {
  int const victim = ranks() - 1;
  auto const got = on_gpus(check_level::cheap, [&](world& w, device& gpu) {
    array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
    sum(gpu, in.data(), out.data(), count, 1, "first");
    gpu.finish();
    if (w.rank() != victim) sum(gpu, in.data(), out.data(), count, 1, "second");
    (void)out.on_host();  // what is behind the operation waits in its name
  });
  CAPTURE(got.text);
  check_deadline(got);
  CHECK(got.says("waits in all_reduce"));
  CHECK(got.says("nobody is absent"));
  CHECK((got.says("of \"second\"") && got.says("of \"first\"")));
  check_next_world();
}

TEST_CASE("a rank that does not come is named") {
  int const victim = 0;
  auto const got = on_gpus(check_level::cheap, [&](world& w, device& gpu) {
    array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
    if (w.rank() == victim)
      std::this_thread::sleep_for(std::chrono::duration<double>(deadline + 1.2));
    sum(gpu, in.data(), out.data());
    gpu.finish();
  });
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::deadline);
  CHECK(got.says("absent: rank 0 (no sign of life"));
  CHECK(got.says("all_reduce #"));
  CHECK(got.seconds < deadline + (dtm::testing::rank() == victim ? 1.7 : 1));
  check_next_world();
}

TEST_CASE("counts that differ: NCCL's error without checks, a comparison with them") {
  int const victim = ranks() - 1;
  for (auto level : {check_level::cheap, check_level::signatures}) {
    auto const got = on_gpus(level, [&](world& w, device& gpu) {
      array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
      sum(gpu, in.data(), out.data(), w.rank() == victim ? count - 1 : count);
      gpu.finish();
    });
    CAPTURE(got.text);
    CHECK(got.seconds < deadline + 1);
    if (level == check_level::signatures) {
      CHECK(got.kind == failure_kind::mismatch);
      CHECK((got.says("100 x fp32") && got.says("99 x fp32") && got.says("differs in: count")));
    } else {
      CHECK((got.kind == failure_kind::device || got.kind == failure_kind::peer));
      CHECK((got.says("dtm nccl: invalid usage") && got.says("run different operations")));
      CHECK(got.says("DTM_CHECK_LEVEL=2"));
    }
  }
  check_next_world();
}

TEST_CASE("blocks of an all_to_all that do not fit are named pair by pair") {
  int const victim = 0, peer = 1 % ranks();
  auto const got = on_gpus(check_level::signatures, [&](world& w, device& gpu) {
    std::vector<std::int64_t> send(std::size_t(ranks()), 2), receive = send;
    if (w.rank() == victim) send[std::size_t(peer)] = 3;
    array<float> const in(gpu, std::size_t(3 * ranks())), out(gpu, std::size_t(3 * ranks()));
    gpu.along(1).all_to_all(in.data(), send, out.data(), receive, {"all_to_all", "x"}).wait();
  });
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::mismatch);
  CHECK(got.says("rank 0 sends 3 elements to rank 1, which expects 2"));
}

TEST_CASE("the wrong partner of a shift: named with checks, a deadline without") {
  int const n = ranks(), victim = n - 1;
  if (n < 3) return;
  for (auto level : {check_level::signatures, check_level::cheap}) {
    auto const got = on_gpus(level, [&](world& w, device& gpu) {
      int right = (w.rank() + 1) % n, left = (w.rank() + n - 1) % n;
      if (w.rank() == victim) std::swap(left, right);
      array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
      gpu.along(1).shift(in.data(), out.data(), count, right, left, {"shift", "ring"}).wait();
      gpu.finish();
    });
    CAPTURE(got.text);
    if (level == check_level::signatures) {
      CHECK(got.kind == failure_kind::mismatch);
      CHECK(got.says("rank " + std::to_string(victim) + " sends to rank " +
                     std::to_string(victim - 1) + ", which waits for rank"));
    } else {
      check_deadline(got);
      CHECK(got.says("of \"ring\""));
    }
  }
  check_next_world();
}

TEST_CASE("an error that NCCL reports on one rank is everyone's, with its words") {
  for (int victim : {0, ranks() - 1})
    for (auto const* function : {"ncclAllReduce", "ncclGroupStart", "ncclCommGetAsyncError"})
      for (auto code : {ncclInternalError, ncclRemoteError, ncclUnhandledCudaError}) {
        CAPTURE(victim, function, int(code));
        auto const got = on_gpus(check_level::cheap, [&](world& w, device& gpu) {
          array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
          sum(gpu, in.data(), out.data());
          gpu.finish();
          if (w.rank() == victim) stand_in::fail_call(function, 1, code);
          sum(gpu, in.data(), out.data(), count, 1, "second");
          gpu.finish();
        });
        check_device_error(got, victim, std::string("dtm nccl: ") + ncclGetErrorString(code));
        CHECK(got.says("of \"second\""));
      }
  check_next_world();
}

TEST_CASE("a kernel that fails on one rank ends the others at once") {
  int const victim = ranks() - 1;
  auto const got = on_gpus(check_level::cheap, [&](world& w, device& gpu) {
    array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
    gpu.finish();
    if (w.rank() == victim)
      dtm::gpu::check(stand_in::enqueue_fault(gpu.compute.native()), "enqueue_fault");
    sum(gpu, in.data(), out.data());
    gpu.finish();
  });
  check_device_error(got, victim, "cudaErrorIllegalAddress");
  check_next_world();
}

TEST_CASE("an exception on one rank while the others are inside NCCL aborts their communicators") {
  for (int victim : {0, ranks() - 1})
    for (bool grid : {false, true}) {
      std::int64_t aborted = 0, connected = 0;
      auto const got = attempt(settings(check_level::cheap, deadline), [&](world& w) {
        device gpu(w, {"cp0", "cp1"}, grid ? square() : std::vector{1, w.size()});
        connected = stand_in::calls("ncclCommInitRankConfig");
        array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
        try {
          sum(gpu, in.data(), out.data(), count, 3);
          if (w.rank() == victim) throw dtm::file_error("planted");
          sum(gpu, in.data(), out.data(), count, 3);
          gpu.finish();
        } catch (dtm::peer_failed const&) {  // what was under way has ended: the stream runs dry
          aborted = stand_in::calls("ncclCommAbort");
          auto const start = clock::now();
          while (!gpu.compute.idle() && seconds_since(start) < 1) stand_in::progress();
          CHECK(gpu.compute.idle());
          throw;
        }
      });
      CAPTURE(got.text, victim, grid);
      CHECK(got.says("planted"));
      CHECK(got.seconds < 1.5);
      if (dtm::testing::rank() == victim) {
        CHECK(got.kind == failure_kind::file);
      } else {
        CHECK(got.kind == failure_kind::peer);
        CHECK(got.says("stopped in all_reduce"));
        CHECK(aborted == connected);
      }
      CHECK(stand_in::calls("ncclCommAbort") == connected);
      CHECK(stand_in::calls("ncclCommDestroy") == 0);
      stand_in::reset();
    }
  check_next_world();
}

TEST_CASE("two communicators used in the other order by some ranks: a deadline names both") {
  if (ranks() != 4 && ranks() != 9) return;
  auto const got = on_gpus(
      check_level::cheap,
      [&](world& w, device& gpu) {
        array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
        bool const crossed = gpu.mesh.coordinate(0) == gpu.mesh.coordinate(1);
        sum(gpu, in.data(), out.data(), count, crossed ? 2 : 1,
            crossed ? "columns first" : "rows first");
        sum(gpu, in.data(), out.data(), count, crossed ? 1 : 2, "second");
        gpu.finish();
      },
      true);
  CAPTURE(got.text);
  check_deadline(got);
  CHECK((got.says("columns first") && got.says("rows first")));
  check_next_world();
}

TEST_CASE("replicas that differ are found at check level 3") {
  int const victim = ranks() - 1;
  auto const got = on_gpus(check_level::data, [&](world& w, device& gpu) {
    array<float> const in(gpu, values<float>(w.rank(), count)), out(gpu, std::size_t(count));
    gpu.finish();
    if (w.rank() == victim) stand_in::corrupt_messages(1);
    gpu.along(1).broadcast(out.data(), count, victim, {"broadcast", "x"}).wait();
  });
  CAPTURE(got.text);
  CHECK(got.kind == failure_kind::replication);
  CHECK(got.says("replicas differ bit for bit: rank"));
  if (ranks() > 2) CHECK(got.says("rank 0 against the others"));
}
