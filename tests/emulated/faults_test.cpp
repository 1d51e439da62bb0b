// Broken rules, each with the sentence that says so, in every order of threads.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "dtm/backend/emulated/launch.hpp"
#include "kernels.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;
using emulation::launch;
using emulation::run_all_schedules;
using emulation::settings;

namespace {

struct tag {};
alignas(16) float x[128] = {};  // device memory

/// A kernel out of a function of the block, two warps wide.
template <class Body>
struct two_warps {
  static constexpr int threads = 64;
  Body body;
  template <class Block>
  void operator()(Block& block) const {
    body(block);
  }
};

/// What a launch of one block says, in each order.
template <class Body>
std::vector<std::string> complaints(Body body) {
  std::vector<std::string> all;
  run_all_schedules([&](settings const& how) {
    try {
      launch(1, two_warps<Body>{body}, how);
      all.push_back("nothing");
    } catch (kernel_error const& error) {
      all.push_back(error.what());
    }
  });
  return all;
}

template <class Body>
void complains(Body body, std::vector<std::string> const& words) {
  for (std::string const& complaint : complaints(body)) {
    REQUIRE_THAT(complaint, testing::contains("kernel "));
    REQUIRE_THAT(complaint, testing::contains("two_warps"));
    REQUIRE_THAT(complaint, testing::contains("block 0"));
    for (std::string const& word : words) REQUIRE_THAT(complaint, testing::contains(word));
  }
  launch(1, two_warps{[](auto& block) { block.sync(); }});  // the next launch is not affected
}

std::string const shared_tag = "of shared array {anonymous}::tag";

/// A transpose of 32 x 32 without its barrier.
struct broken {
  static constexpr int threads = 256;
  float const* x;
  float* y;
  void operator()(emulation::block& block) const {
    auto&& tile = block.shared<float, 32 * 33, tag>();
    for (int i = block.warp(); i < 32; i += 8)
      tile[i * 33 + block.lane()] = x[i * 32 + block.lane()];
    for (int i = block.warp(); i < 32; i += 8)
      y[i * 32 + block.lane()] = tile[block.lane() * 33 + i];
  }
};

struct first_block_writes {
  static constexpr int threads = 32;
  void operator()(emulation::block& block) const {
    auto&& a = block.shared<int, 1, tag>();
    if (block.index() == 0 && block.thread() == 0) a[0] = 1;
    block.sync();
    static_cast<void>(int(a[0]));
  }
};

struct last_one_wins {
  static constexpr int threads = 32;
  int* y;
  void operator()(emulation::block& block) const { *y = block.thread(); }
};

}  // namespace

TEST_CASE("a transpose without its barrier") {
  std::vector<float> x(1024), y(1024);
  run_all_schedules([&](settings const& how) {
    REQUIRE_THROWS_AS(launch(1, broken{x.data(), y.data()}, how), kernel_error);
  });
  // ascending, thread 0 comes to what nobody has written yet
  REQUIRE_THROWS_WITH(launch(1, broken{x.data(), y.data()}, {emulation::schedule::ascending}),
                      testing::contains("block 0, thread 0: reads element 8 of shared array") &&
                          testing::contains("tag, which no thread of the block has written"));
}

TEST_CASE("races through shared memory") {
  auto const array = [](auto& block) { return block.template shared<int, 64, tag>(); };
  complains([=](auto& block) { array(block)[8] = block.thread(); },
            {"write/write race on element 8 of shared array ", "threads ", " and ",
             "in barrier interval 0"});
  complains(
      [=](auto& block) {
        auto&& a = array(block);
        a[block.thread()] = 1;
        block.sync();
        if (block.thread() == 40) a[3] = 2;
        int const seen = a[block.thread() == 1 ? 3 : block.thread()];
        static_cast<void>(seen);
      },
      {"read/write race on element 3 of shared array ", "barrier interval 1", "sync() belongs"});
  complains(
      [=](auto& block) {  // a second use of the array, without a barrier before
        auto&& a = array(block);
        a[block.thread()] = 1;
        block.sync();
        int const seen = a[63 - block.thread()];
        a[block.thread()] = seen;
      },
      {"read/write race", "barrier interval 1"});
  complains(
      [=](auto& block) {  // sync_warp() does not order other warps
        auto&& a = array(block);
        a[block.thread()] = 1;
        block.sync_warp();
        int const seen = a[(block.thread() + 32) % 64];
        static_cast<void>(seen);
      },
      {"shared array "});
  complains(
      [=](auto& block) {  // an atomic sum beside a plain read
        auto&& a = array(block);
        a[block.thread()] = 1;
        block.sync();
        block.atomic_add(&a[0], 1);
        if (block.thread() == 50) a[1] = int(a[0]);
      },
      {"race on element 0"});
}

TEST_CASE("an exchange in a warp without sync_warp") {
  complains(
      [](auto& block) {
        auto&& a = block.template shared<int, 64, tag>();
        a[block.thread()] = 0;
        block.sync();
        a[block.thread()] = block.thread();
        int const seen = a[block.thread() ^ 1];
        static_cast<void>(seen);
      },
      {"race on element", "sync_warp() or sync() belongs between"});
  complains(
      [](auto& block) {  // a shuffle moves values and orders nothing else
        auto&& a = block.template shared<int, 64, tag>();
        a[block.thread()] = block.thread();
        block.shuffle_xor(0, 1);
        int const seen = a[block.thread() ^ 1];
        static_cast<void>(seen);
      },
      {"read/write race", "sync_warp() or sync() belongs between"});
}

TEST_CASE("readers of several warps and intervals are remembered") {
  auto const later_write = [](int reader, int writer) {
    return [=](auto& block) {
      auto&& a = block.template shared<int, 1, tag>();
      if (block.thread() == 0) a[0] = 1;
      block.sync();
      if (block.thread() == reader) static_cast<void>(int(a[0]));
      block.sync_warp();
      if (block.thread() == 9) static_cast<void>(int(a[0]));
      block.sync_warp();
      if (block.thread() == writer) a[0] = 2;
    };
  };
  for (std::string const& text : complaints(later_write(5, 6))) REQUIRE(text == "nothing");
  for (std::string const& text : complaints(later_write(5, 5))) REQUIRE(text == "nothing");
  complains(later_write(40, 6), {"read/write race on element 0"});
  complains(later_write(40, 41), {"read/write race on element 0"});
}

TEST_CASE("shared memory that nobody wrote, indices outside, too much of it") {
  complains(
      [](auto& block) {
        float const v = block.template shared<float, 64, tag>()[block.thread()];
        static_cast<void>(v);
      },
      {"reads element ", shared_tag, "which no thread of the block has written"});
  complains([](auto& block) { block.template shared<int, 63, tag>()[block.thread()] = 1; },
            {"thread 63: touches element 63 of shared array ", "tag, which has 63"});
  complains([](auto& block) { block.template shared<int, 64, tag>()[block.thread() - 1] = 1; },
            {"thread 0: touches element -1 of shared array "});
  complains([](auto& block) { block.template shared<double, 6145, tag>(); },
            {"49168 bytes of shared memory; a block has 49152"});
  for (std::string const& text :
       complaints([](auto& block) { block.template shared<double, 6144, tag>(); }))
    REQUIRE(text == "nothing");

  // what another block wrote is not there
  REQUIRE_THROWS_WITH(launch(2, first_block_writes{}, {emulation::schedule::ascending}),
                      testing::contains("block 1, thread 0: reads element 0"));
}

TEST_CASE("barriers that a thread skips") {
  complains(
      [](auto& block) {
        if (block.thread() == 3) return;
        block.sync();
      },
      {"threads 0-2, 4-63 wait at sync() at faults_test.cpp:", "thread 3 has left the kernel",
       "no thread may skip a barrier"});
  complains(
      [](auto& block) {  // half a warp shuffles
        if (block.lane() < 16) block.shuffle_xor(1.0f, 8);
      },
      {"threads 0-15, 32-47 wait at shuffle_xor() at faults_test.cpp:",
       "threads 16-31, 48-63 have left the kernel"});
  complains(
      [](auto& block) {
        if (block.warp() == 1) block.sync_warp();
        if (block.thread() != 33) block.sync_warp();
        if (block.warp() == 0) block.any(true);
      },
      {"wait at any()", "wait at sync_warp()", "thread 33 has left the kernel"});
}

TEST_CASE("threads at different barriers") {
  complains(
      [](auto& block) {
        if (block.thread() < 20)
          block.sync();
        else
          block.any(true);
      },
      {"waits at ", "sync() at faults_test.cpp:", "any() at faults_test.cpp:",
       "all threads must come to the same barrier"});
  complains(
      [](auto& block) {  // the same operation in two branches
        if (block.thread() % 2)
          block.sync();
        else
          block.sync();
      },
      {"all threads must come to the same barrier"});
  complains(
      [](auto& block) {
        if (block.lane() < 5)
          block.sync_warp();
        else
          block.shuffle_down(1, 1);
      },
      {"waits at ", "sync_warp()", "shuffle_down()"});
  complains(
      [](auto& block) {
        if (block.warp() == 0 && block.lane() < 5)
          block.sync();
        else
          block.shuffle_down(1, 1);
      },
      {"threads 0-4 wait at sync() at", "threads 5-31 wait at shuffle_down() at",
       "threads 32-63 have left the kernel"});
}

TEST_CASE("shuffles beyond the warp") {
  complains([](auto& block) { block.shuffle_xor(1, 32); }, {"shuffle_xor(value, 32)"});
  complains([](auto& block) { block.shuffle_down(1, -1); }, {"shuffle_down(value, -1)"});
}

TEST_CASE("neighbours off their alignment") {
  complains([](auto& block) { block.template load<4>(x + 1); },
            {"load of 16 bytes, 4 off their alignment"});
  complains([](auto& block) { block.store(x + 2, kernels::vector<float, 4>{}); },
            {"store of 16 bytes, 8 off their alignment"});
  complains(
      [](auto& block) {
        auto&& a = block.template shared<float, 64, tag>();
        block.template copy_async<2>(a, 2 * (block.thread() % 2) + 1, x);
      },
      {"copy_async of 8 bytes, 4 off their alignment"});
  complains(
      [](auto& block) {
        auto&& a = block.template shared<float, 6, tag>();
        block.store(&a[4], kernels::vector<float, 4>{});
      },
      {"touches element 7 of shared array "});
}

TEST_CASE("asynchronous copies that are read too early") {
  auto const copy = [](auto& block) {
    auto&& a = block.template shared<float, 64, tag>();
    block.template copy_async<1>(a, block.thread(), x + block.thread());
    return a;
  };
  complains(
      [=](auto& block) {
        auto a = copy(block);
        block.commit();
        block.sync();  // no wait
        static_cast<void>(float(a[block.thread()]));
      },
      {"while an asynchronous copy of thread ", "wait() and sync() come first"});
  complains(
      [=](auto& block) {  // no commit: nothing to wait for
        auto a = copy(block);
        block.template wait<0>();
        block.sync();
        static_cast<void>(float(a[block.thread()]));
      },
      {"while an asynchronous copy of thread "});
  complains(
      [=](auto& block) {  // one batch may still be under way
        auto a = copy(block);
        block.commit();
        block.template wait<1>();
        block.sync();
        static_cast<void>(float(a[block.thread()]));
      },
      {"while an asynchronous copy of thread "});
  complains(
      [=](auto& block) {  // no barrier: others' copies may not have come
        auto a = copy(block);
        block.commit();
        block.template wait<0>();
        static_cast<void>(float(a[(block.thread() + 32) % 64]));
      },
      {" of shared array "});
  complains([=](auto& block) { copy(block); },
            {"leaves the kernel before wait() for its asynchronous copies"});
}

TEST_CASE("an exception in a kernel") {
  complains(
      [](auto& block) {
        if (block.thread() == 17) throw std::logic_error("seventeen");
        block.sync();
      },
      {"thread 17: throws an exception: seventeen"});
}

TEST_CASE("a launch in a kernel") {
  complains([](auto&) { launch(1, two_warps{[](auto& block) { block.sync(); }}); },
            {"is launched in a kernel"});
}

TEST_CASE("results that depend on the order of threads") {
  REQUIRE_THROWS_WITH(run_all_schedules([](settings const& how) {
                        std::vector<int> y(1);
                        launch(1, last_one_wins{y.data()}, how);
                        return y;
                      }),
                      testing::contains("ascending and descending differ at element 0"));
}
