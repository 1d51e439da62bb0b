// Every operation of the block against what it should do, in every order of threads and blocks.

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "dtm/backend/emulated/launch.hpp"
#include "kernels.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;
using namespace dtm::testing;
using emulation::launch;
using emulation::run_all_schedules;
using emulation::settings;

namespace {

/// Launches kernels on fresh results in all orders; what comes out is the same bits.
template <class T, class Make>
std::vector<T> results(std::size_t count, std::int64_t blocks, Make make) {
  return run_all_schedules([&](settings const& how) {
    std::vector<T> y(count);
    launch(blocks, make(y.data()), how);
    return y;
  });
}

/// Small integers in an order without a pattern.
template <class T>
std::vector<T> numbers(std::size_t count) {
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = T(float(int(i * 37 % 101) - 50));
  return x;
}

}  // namespace

TEST_CASE("a thread knows where it is") {
  auto const y =
      results<std::int64_t>(3 * 64 * 6, 3, [](std::int64_t* y) { return where_am_i{y}; });
  for (std::int64_t block = 0; block < 3; ++block)
    for (std::int64_t thread = 0; thread < 64; ++thread) {
      std::int64_t const* const of = y.data() + (block * 64 + thread) * 6;
      std::vector<std::int64_t> const expected = {
          block, 3, thread, 64, thread / 32 * 100 + thread % 32, 192};
      REQUIRE(std::vector<std::int64_t>(of, of + 6) == expected);
    }
}

TEST_CASE("a transpose through shared memory") {
  std::int64_t const n = 96;
  auto const x = numbers<float>(std::size_t(n * n));
  auto const y = results<float>(x.size(), 9, [&](float* y) { return transpose{x.data(), y, n}; });
  std::vector<float> expected(x.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) expected[j * n + i] = x[i * n + j];
  REQUIRE(y == expected);
}

TEST_CASE("barriers put threads in a row") {
  auto const y = results<unsigned>(2 * 96, 2, [](unsigned* y) { return chain{y}; });
  unsigned expected = 0;
  for (unsigned turn = 0; turn < 96; ++turn) expected = expected * 3 + turn;
  for (unsigned total : y) REQUIRE(total == expected);
}

TEST_CASE("any() is true on all where it is on one") {
  for (int bits : results<int>(128, 2, [](int* y) { return ask{y}; })) REQUIRE(bits == 5);
}

namespace {

template <class T>
void check_shuffles() {
  auto const y = results<T>(64 * 3, 1, [](T* y) { return shuffles<T>{y}; });
  for (int thread = 0; thread < 64; ++thread) {
    int const warp = thread / 32 * 32, lane = thread % 32;
    T const* const of = y.data() + thread * 3;
    REQUIRE(of[0] == T(float((thread ^ 5) + 1)));
    REQUIRE(of[1] == T(float(warp + (lane + 3 < 32 ? lane + 3 : lane) + 1)));
    REQUIRE(of[2] == T(float(warp + (lane == 0 ? 31 : lane) + 1)));
  }
}

}  // namespace

TEST_CASE("shuffles of 2, 4 and 8 bytes") {
  check_shuffles<bf16>();
  check_shuffles<float>();
  check_shuffles<double>();
  check_shuffles<std::int64_t>();
}

TEST_CASE("a warp exchanges through shared memory") {
  auto const y = results<int>(64, 1, [](int* y) { return rotate_warp{y}; });
  for (int thread = 0; thread < 64; ++thread)
    REQUIRE(y[std::size_t(thread)] == thread / 32 * 32 + (thread + 3) % 32);
}

TEST_CASE("sums and maxima of warps and blocks") {
  auto const x = numbers<double>(256);
  auto const y = results<double>(4 * 256, 2, [&](double* y) {
    return reductions<double>{x.data(), y};
  });
  for (std::size_t i = 0; i < 256; ++i) {
    auto const warp = x.begin() + std::ptrdiff_t(i / 32 * 32);
    auto const block = x.begin() + std::ptrdiff_t(i / 128 * 128);
    REQUIRE(y[4 * i] == std::accumulate(warp, warp + 32, 0.0));
    REQUIRE(y[4 * i + 1] == std::accumulate(block, block + 128, 0.0));
    REQUIRE(y[4 * i + 2] == *std::max_element(warp, warp + 32));
    REQUIRE(y[4 * i + 3] == *std::max_element(block, block + 128));
  }
}

TEST_CASE("a sum has an order, whatever the schedule") {
  std::vector<float> x(128);
  for (std::size_t i = 0; i < 128; ++i) x[i] = 1.0f / float(i + 1);
  auto const y = results<float>(4 * 128, 1, [&](float* y) {
    return reductions<float>{x.data(), y};
  });
  // halves of a warp are added lane by lane, then halves of those; the warps in their order
  float total = 0;
  for (int warp = 0; warp < 4; ++warp) {
    std::vector<float> lanes(x.begin() + warp * 32, x.begin() + warp * 32 + 32);
    for (std::size_t half = 16; half > 0; half /= 2)
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    REQUIRE(y[std::size_t(warp) * 128] == lanes[0]);
    total += lanes[0];
  }
  REQUIRE(y[1] == total);
}

namespace {

template <class Count>
void check_histogram() {
  std::vector<int> x(1000);
  std::vector<Count> expected(7);
  for (std::size_t i = 0; i < x.size(); ++i) ++expected[std::size_t(x[i] = int(i * i % 7))];
  auto const y = results<Count>(7, 3, [&](Count* y) {
    return histogram<Count>{x.data(), y, std::int64_t(x.size())};
  });
  REQUIRE(y == expected);
}

template <class T, int N>
void check_vectors() {
  std::size_t const each = 32 * N;
  std::vector<kernels::vector<T, N>> x(3 * 32), y(x.size());  // for the alignment
  auto const values = numbers<T>(3 * each);
  std::memcpy(static_cast<void*>(x.data()), values.data(), 3 * each * sizeof(T));
  launch(3, vectors<T, N>{&x[0][0], &y[0][0]});
  for (std::size_t i = 0; i < 3 * each; ++i)
    REQUIRE(y[i / N].element[i % N] == values[i / each * each + each - 1 - i % each]);
}

}  // namespace

TEST_CASE("atomic sums of integers") {
  check_histogram<int>();
  check_histogram<std::uint32_t>();
  check_histogram<std::int64_t>();
}

TEST_CASE("neighbours are loaded and stored at once") {
  check_vectors<float, 4>();
  check_vectors<float, 2>();
  check_vectors<double, 2>();
  check_vectors<bf16, 8>();
}

TEST_CASE("asynchronous copies, two stages") {
  std::size_t const rows = 5;
  struct alignas(16) four {
    float x[4];
  };
  std::vector<four> x(rows * 32);
  auto const values = numbers<float>(rows * 128);
  std::memcpy(x.data(), values.data(), values.size() * sizeof(float));
  auto const y = results<float>(32, 1, [&](float* y) { return pipeline{x[0].x, y, int(rows)}; });
  for (std::size_t thread = 0; thread < 32; ++thread) {
    float expected = 0;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < 4; ++i)
        expected += values[row * 128 + (4 * thread + i + 64) % 128];
    REQUIRE(y[thread] == expected);
  }
}

TEST_CASE("a warp multiplies a tile") {
  auto const a = numbers<bf16>(2 * 256), b = numbers<bf16>(2 * 128);
  auto const d = numbers<float>(2 * 128);
  auto const y = run_all_schedules([&](settings const& how) {
    auto result = d;
    launch(1, multiply_tile{a.data(), b.data(), result.data()}, how);
    return result;
  });
  for (int tile = 0; tile < 2; ++tile)
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < 8; ++column) {
        std::size_t const at = std::size_t(tile * 128 + row * 8 + column);
        float expected = d[at];
        for (int k = 0; k < 16; ++k)
          expected += float(a[std::size_t(tile * 256 + row * 16 + k)]) *
                      float(b[std::size_t(tile * 128 + k * 8 + column)]);
        REQUIRE(y[at] == expected);
      }
}

TEST_CASE("functions") {
  std::vector<double> x(32);
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0.25 * double(i + 1);
  auto const y = results<double>(96, 1, [&](double* y) { return functions<double>{x.data(), y}; });
  for (std::size_t i = 0; i < 32; ++i) {
    REQUIRE(y[3 * i] == std::exp(x[i]));
    REQUIRE(y[3 * i + 1] == std::log(x[i]));
    REQUIRE(y[3 * i + 2] == Approx(std::pow(x[i], -0.5)).epsilon(1e-14));
  }
}

TEST_CASE("shared elements of types that convert on demand") {
  auto const y = results<float>(32, 1, [](float* y) { return shared_bf16{y}; });
  for (int thread = 0; thread < 32; ++thread)
    REQUIRE(y[std::size_t(thread)] == float(thread + (thread + 1) % 32 + 1));
}

TEST_CASE("a loop over an index, and many blocks") {
  auto const x = numbers<float>(1'000'003);
  auto const y = results<float>(x.size(), 3000, [&](float* y) {
    return twice{x.data(), y, std::int64_t(x.size())};
  });
  for (std::size_t i = 0; i < x.size(); ++i)
    if (y[i] != 2 * x[i]) FAIL("element " << i);
  SUCCEED();

  std::vector<float> z(x.size());
  auto const body = [&z, &x](std::int64_t i) { z[std::size_t(i)] = x[std::size_t(i)] + 1; };
  launch(7, kernels::each_index<decltype(body)>{body, std::int64_t(x.size())});
  for (std::size_t i = 0; i < x.size(); ++i)
    if (z[i] != x[i] + 1) FAIL("element " << i);
}

TEST_CASE("no block is no launch") {
  launch(0, where_am_i{nullptr});
  REQUIRE_THROWS_AS(launch(-1, where_am_i{nullptr}), kernel_error);
}

TEST_CASE("shuffled blocks are a permutation") {
  for (std::int64_t blocks : {1, 2, 3, 64, 97, 1000})
    for (std::uint64_t seed : {0u, 1u, 2u, 77u}) {
      emulation::detail::block_order const order(blocks, {emulation::schedule::shuffled, seed});
      std::vector<int> seen(std::size_t(blocks), 0);
      for (std::int64_t i = 0; i < blocks; ++i) ++seen.at(std::size_t(order[i]));
      REQUIRE(seen == std::vector<int>(std::size_t(blocks), 1));
    }
}
