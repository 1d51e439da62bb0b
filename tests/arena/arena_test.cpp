// The arena by itself: alignment, reuse, neighbours that become one, growth, limits, and the same
// places in every run.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "dtm/backend/host/arena.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

constexpr std::size_t mebibyte = std::size_t(1) << 20;

/// What went wrong, or nothing.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (memory_error const& e) {
    return e.what();
  }
  return "";
}

bool says(std::string const& text, std::string const& words) {
  return text.find(words) != std::string::npos;
}

/// A program that allocates and releases at random, and looks whether what it wrote is still there.
/// What it got, in order.
std::vector<std::uintptr_t> work_at_random(arena& memory, int steps, unsigned seed) {
  struct held {
    unsigned char* start;
    std::size_t bytes;
    unsigned char content;
  };
  std::mt19937 draw(seed);
  std::vector<held> all;
  std::vector<std::uintptr_t> places;
  std::size_t wrong = 0;
  for (int step = 0; step < steps; ++step) {
    if (all.size() < 40 && draw() % 5 != 0) {
      std::size_t const bytes = 1 + draw() % (std::size_t(1) << (4 + draw() % 18));
      auto* const start = static_cast<unsigned char*>(memory.allocate(bytes));
      auto const content = static_cast<unsigned char>(draw());
      std::memset(start, content, bytes);
      all.push_back({start, bytes, content});
      places.push_back(reinterpret_cast<std::uintptr_t>(start));
    } else if (!all.empty()) {
      std::swap(all[draw() % all.size()], all.back());
      auto const& last = all.back();
      wrong += std::size_t(std::count_if(last.start, last.start + last.bytes,
                                         [&](auto c) { return c != last.content; }));
      memory.release(last.start);
      all.pop_back();
    }
  }
  for (auto const& h : all) memory.release(h.start);
  CHECK(wrong == 0);
  return places;
}

}  // namespace

TEST_CASE("every piece is aligned, and different") {
  arena memory;
  std::vector<std::uintptr_t> places;
  for (std::size_t bytes : {1, 63, 64, 65, 4000, 32768, 32769, 1 << 20, 3 << 20, 20 << 20}) {
    void* const start = memory.allocate(bytes);
    places.push_back(reinterpret_cast<std::uintptr_t>(start));
    CHECK(places.back() % 64 == 0);
    std::memset(start, 1, bytes);
  }
  std::sort(places.begin(), places.end());
  CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
}

TEST_CASE("what is released is given out again") {
  arena memory;
  void* const first = memory.allocate(3 * mebibyte);
  auto const asked = memory.system_allocations();
  for (int i = 0; i < 100; ++i) {
    memory.release(memory.allocate(2 * mebibyte));
    memory.release(memory.allocate(100));
  }
  memory.release(first);
  CHECK(memory.allocate(3 * mebibyte) == first);
  CHECK(memory.system_allocations() == asked);
}

TEST_CASE("neighbours become one piece again, in any order of release") {
  arena memory(12 * mebibyte);
  auto const empty = memory.largest_free();
  REQUIRE(empty >= 12 * mebibyte);
  std::vector<int> order{0, 1, 2, 3, 4};
  do {
    std::vector<void*> pieces;
    for (int i = 0; i < 5; ++i) pieces.push_back(memory.allocate(3 * mebibyte));
    CHECK(memory.largest_free() < 3 * mebibyte);
    for (int i : order) memory.release(pieces[std::size_t(i)]);
    CHECK(memory.largest_free() == empty);
    CHECK(memory.used_bytes() == 0);
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(memory.system_allocations() == 1);
}

TEST_CASE("small pieces do not split the room of a tile") {
  arena memory(12 * mebibyte);
  std::vector<void*> small{memory.allocate(1000)};
  void* const tile = memory.allocate(3 * mebibyte);
  void* const beside = memory.allocate(mebibyte);
  memory.release(tile);
  for (int i = 0; i < 100; ++i) small.push_back(memory.allocate(1000));
  CHECK(memory.allocate(3 * mebibyte) == tile);
  CHECK(memory.system_allocations() == 1);
  (void)beside;
}

TEST_CASE("blocks are added, each as large as what there is, and counted") {
  arena memory;
  CHECK(memory.system_allocations() == 0);
  std::size_t held = 0;
  for (int i = 0; i < 64; ++i, held += 4 * mebibyte) (void)memory.allocate(4 * mebibyte);
  CHECK(memory.reserved_bytes() >= held);
  CHECK(memory.reserved_bytes() <= 3 * held);
  CHECK(memory.system_allocations() <= 7);
}

TEST_CASE("what is reserved suffices for what was foretold") {
  // four tiles that come and go beside small tensors, as in a module
  std::size_t const tile = 5 * mebibyte, foretold = 4 * tile + 100 * 1000;
  arena memory(foretold);
  CHECK(memory.system_allocations() == 1);
  std::vector<void*> small;
  for (int i = 0; i < 100; ++i) small.push_back(memory.allocate(1000));
  for (int repeat = 0; repeat < 3; ++repeat) {
    void *const a = memory.allocate(tile), *const b = memory.allocate(tile),
                *const c = memory.allocate(tile);
    memory.release(a);
    void* const half = memory.allocate(tile / 2);
    void* const d = memory.allocate(tile);
    memory.release(b);
    memory.release(half);
    memory.release(d);
    memory.release(c);
  }
  CHECK(memory.system_allocations() == 1);
}

TEST_CASE("the same program has the same places") {
  arena one(400 * mebibyte), other(400 * mebibyte);
  auto const first = work_at_random(one, 4000, 1), second = work_at_random(other, 4000, 1);
  REQUIRE(first.size() == second.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    different += first[i] - first[0] != second[i] - second[0];
  CHECK(different == 0);
  CHECK(one.system_allocations() == 1);
  CHECK(one.used_bytes() <= mebibyte * 40);  // regions of small pieces stay
}

TEST_CASE("content stays, whatever is allocated and released meanwhile") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    arena memory;
    work_at_random(memory, 2000, seed);
  }
}

TEST_CASE("without room the error says how much, for whom, and what there is") {
  arena memory(0, 10 * mebibyte);
  void* const held = memory.allocate(6 * mebibyte);
  auto const text =
      error_of([&] { (void)memory.allocate(8 * mebibyte, "triangle_multiplication_outgoing"); });
  INFO(text);
  CHECK(says(text, "no room for 8388608 bytes of triangle_multiplication_outgoing"));
  CHECK(says(text, std::to_string(memory.used_bytes()) + " of 8388608 reserved bytes are in use"));
  CHECK(says(text, "largest free piece has " + std::to_string(memory.largest_free())));
  CHECK(says(text, "options.arena_limit is 10485760"));
  memory.release(held);
  (void)memory.allocate(7 * mebibyte);  // it goes on

  CHECK(says(error_of([] { arena too_much(std::size_t(1) << 52); }), "Cannot allocate memory"));
  CHECK(says(error_of([] { arena too_much(~std::size_t(0)); }), "options.arena_bytes"));
  CHECK(
      says(error_of([] { arena too_much(20 * mebibyte, 10 * mebibyte); }), "options.arena_limit"));
}
