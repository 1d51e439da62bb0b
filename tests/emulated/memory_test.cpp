// Guarded device memory, and what launch() says about an access beyond it.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dtm/backend/emulated/launch.hpp"
#include "kernels.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;
using emulation::launch;
using testing::contains;

namespace {

#ifdef DTM_ADDRESS_SANITIZER
constexpr bool sanitizer_sees_first = true;  // bytes beside an allocation that share its pages
#else
constexpr bool sanitizer_sees_first = false;
#endif

struct buffer {
  explicit buffer(std::size_t count)
      : bytes(count), data(static_cast<char*>(emulation::allocate(count))) {}
  buffer(buffer const&) = delete;
  ~buffer() { emulation::release(data, bytes); }
  std::size_t bytes;
  char* data;
};

/// Thread 5 reads or writes one element.
struct touch {
  static constexpr int threads = 32;
  volatile float* x;
  std::int64_t at;
  bool write;
  template <class Block>
  void operator()(Block& block) const {
    block.sync();
    if (block.thread() != 5) return;
    if (write)
      x[at] = 1;
    else
      static_cast<void>(x[at]);
  }
};

struct guarded_before {
  guarded_before() { emulation::guard_before(true); }
  ~guarded_before() { emulation::guard_before(false); }
};

struct deep {
  static constexpr int threads = 32;
  static int fill(int left) {
    volatile char frame[1024];
    for (auto& byte : frame) byte = char(left);
    return left == 0 ? frame[0] : fill(left - 1) + frame[1];
  }
  int levels;
  int* y;
  void operator()(emulation::block& block) const { y[block.thread()] = fill(levels); }
};

}  // namespace

TEST_CASE("allocations are aligned, hold what they should and are used again") {
  std::vector<std::unique_ptr<buffer>> all;
  for (std::size_t bytes : {1u, 4u, 15u, 16u, 100u, 4095u, 4096u, 4097u, 70'000u, 3'000'000u})
    for (int i = 0; i < 3; ++i) {
      all.push_back(std::make_unique<buffer>(bytes));
      REQUIRE(reinterpret_cast<std::uintptr_t>(all.back()->data) % 16 == 0);
      std::memset(all.back()->data, int(all.size()), bytes);
    }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t byte : {std::size_t(0), all[i]->bytes - 1})
      REQUIRE(all[i]->data[byte] == char(i + 1));
  char* const last = all.back()->data;
  all.pop_back();
  REQUIRE(buffer(3'000'000).data == last);
  emulation::release(nullptr, 0);
}

TEST_CASE("many small allocations") {
  std::vector<std::unique_ptr<buffer>> all;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 5000; ++i) all.push_back(std::make_unique<buffer>(i % 999 + 1));
    launch(1, touch{reinterpret_cast<float*>(all[998]->data), 0, true});
    all.clear();
  }
}

#if DTM_EMULATED_OWN_SWITCH
TEST_CASE("beyond the end of an allocation") {
  buffer const x(400);
  auto* const data = reinterpret_cast<float*>(x.data);
  launch(1, touch{data, 99, true});
  REQUIRE_THROWS_WITH(launch(1, touch{data, 100, false}),
                      contains("kernel {anonymous}::touch, block 0, thread 5: reads at byte 400 "
                               "of an allocation of 400 bytes, beyond its end"));
  REQUIRE_THROWS_WITH(launch(1, touch{data, 1100, true}),
                      contains("writes at byte 4400 of an allocation of 400 bytes"));
  launch(1, touch{data, 0, true});
}

TEST_CASE("before the start of an allocation") {
  guarded_before const side;
  buffer const x(400);
  auto* const data = reinterpret_cast<float*>(x.data);
  launch(1, touch{data, 0, true});
  REQUIRE_THROWS_WITH(launch(1, touch{data, -1, false}),
                      contains("thread 5: reads at byte -4 of an allocation of 400 bytes, "
                               "before its start"));
  REQUIRE_THROWS_WITH(launch(1, touch{data, -1, true}), contains("writes at byte -4"));
}

TEST_CASE("memory that was released, or never was there") {
  float* gone = nullptr;
  {
    buffer const x(400);
    gone = reinterpret_cast<float*>(x.data);
  }
  REQUIRE_THROWS_WITH(launch(1, touch{gone, 1, false}),
                      contains("reads at byte 4 of an allocation of 400 bytes that has been "
                               "released"));
  auto* const low = reinterpret_cast<float*>(std::uintptr_t(64));
  REQUIRE_THROWS_WITH(launch(1, touch{low, 0, true}),
                      contains("writes address 0x40, which is in no allocation"));
  auto* const nowhere = reinterpret_cast<float*>(std::uintptr_t(0xdead) << 48);
  REQUIRE_THROWS_WITH(launch(1, touch{nowhere, 0, true}), contains("which is in no allocation"));
}

TEST_CASE("a stack that is too small") {
  std::vector<int> y(32);
  launch(1, deep{40, y.data()});
  REQUIRE_THROWS_WITH(launch(1, deep{10'000, y.data()}), contains("bytes of stack"));
  launch(1, deep{40, y.data()});
}
#endif

TEST_CASE("bytes beside an allocation that no guard covers") {
  if (sanitizer_sees_first) {
    SUCCEED();
    return;
  }
  {
    buffer const x(12);
    auto* const data = reinterpret_cast<float*>(x.data);
    std::string const said =
        "or one launched before it, writes at byte 12 of an allocation of 12 bytes, beyond its end";
    REQUIRE_THROWS_WITH(launch(1, touch{data, 3, true}), contains(said));
    REQUIRE_THROWS_WITH(launch(1, touch{data, -2, true}),
                        contains("writes at byte -8 of an allocation of 12 bytes, before"));
    launch(1, touch{data, 0, true});
  }
  guarded_before const side;
  buffer const x(400);
  REQUIRE_THROWS_WITH(launch(1, touch{reinterpret_cast<float*>(x.data), 101, true}),
                      contains("writes at byte 40"));
}
