// A tensor owns one tile: extents, memory account, moves, clones, fresh memory, from_local and
// to_local.
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/place.hpp"
#include "dtm/core/host_copy.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

using grid = mesh<dp, cp0, cp1>;
using pair = layout<grid, shape<batch, tokens, tokens, c<4>>, shard<0>, shard<1>, shard<2>>;
using here = testing::place<grid>;
using z_type = tensor<float, pair>;

constexpr auto bound = extents{bind<batch>(2), bind<tokens>(6)};

struct counted {
  static inline int alive = 0;
  counted() { ++alive; }
  ~counted() { --alive; }
};

}  // namespace

TEST_CASE("a tensor has the extents of its names and a tile of its rank") {
  here at({2, 2, 3}, {1, 1, 2});
  z_type z(at, bound);
  CHECK(z.global() == global_extents<4>{{2, 6, 6, 4}});
  CHECK(z.global_extent(2) == 6);
  CHECK(z.size() == 1 * 3 * 2 * 4);
  CHECK(z.bytes() == z.size() * 4);
  CHECK(z.tile().begin[2] == 4);
  auto const local = z.to_local();
  CHECK(local.extent[1] == 3);
  CHECK(local.outer(2) == 3);
  CHECK(local.inner(1) == 8);
  CHECK(local.size() == z.size());
  CHECK(reinterpret_cast<std::uintptr_t>(z.data()) % 64 == 0);
}

TEST_CASE("views are row-major") {
  here at({1, 1, 1});
  z_type z(at, bound);
  auto const local = z.to_local();
  for (std::int64_t i = 0; i < z.size(); ++i) z.data()[i] = float(i);
  CHECK(local(0, 0, 0, 3) == 3.0f);
  CHECK(local(0, 0, 1, 0) == 4.0f);
  CHECK(local(0, 1, 0, 0) == 24.0f);
  CHECK(local(1, 5, 5, 3) == float(z.size() - 1));
  view<float const, 4> const read_only = local;
  CHECK(read_only(1, 0, 0, 0) == 144.0f);
  CHECK(read_only.end() - read_only.begin() == z.size());
}

TEST_CASE("the account knows current and peak bytes") {
  here at({1, 1, 1});
  std::int64_t const one = 2 * 6 * 6 * 4 * 4;
  {
    z_type first(at, bound);
    CHECK(at.account.current_bytes == one);
    {
      z_type second(at, bound);
      CHECK(at.account.current_bytes == 2 * one);
    }
    CHECK(at.account.current_bytes == one);
    CHECK(at.account.peak_bytes == 2 * one);
    at.account.restart_peak();
    CHECK(at.account.peak_bytes == one);
    first.release();
    CHECK(at.account.current_bytes == 0);
    CHECK(first.size() == 0);
    CHECK(first.data() == nullptr);
    first.release();  // twice is once
    CHECK(at.account.current_bytes == 0);
  }
  CHECK(at.account.current_bytes == 0);
}

TEST_CASE("the bytes of a rank fall as one over the number of ranks") {
  here whole({1, 1, 1}), quarter({1, 2, 2}), ninth({1, 3, 3});
  z_type a(whole, bound), b(quarter, bound), d(ninth, bound);
  CHECK(a.bytes() == 4 * b.bytes());
  CHECK(a.bytes() == 9 * d.bytes());
}

TEST_CASE("a move takes the tile along") {
  here at({1, 1, 1});
  z_type first(at, bound);
  first.data()[5] = 7;
  float const* const tile = first.data();
  z_type second(std::move(first));
  CHECK(second.data() == tile);
  CHECK(first.data() == nullptr);
  CHECK(first.size() == 0);

  z_type third(at, extents{bind<batch>(1), bind<tokens>(2)});
  third = std::move(second);
  CHECK(third.data() == tile);
  CHECK(third.global_extent(1) == 6);
  CHECK(third.data()[5] == 7);
  CHECK(at.account.current_bytes == third.bytes());

  auto& itself = third;
  third = std::move(itself);
  CHECK(third.data() == tile);
}

TEST_CASE("a clone is equal and apart") {
  here at({1, 2, 2}, {0, 1, 0});
  z_type z(at, bound);
  for (std::int64_t i = 0; i < z.size(); ++i) z.data()[i] = float(i) * 0.5f;
  z_type copy = z.clone();
  CHECK(copy.global() == z.global());
  CHECK(copy.data() != z.data());
  CHECK(std::memcmp(copy.data(), z.data(), std::size_t(z.bytes())) == 0);
  copy.data()[0] = 99;
  CHECK(z.data()[0] == 0);
}

TEST_CASE("fresh memory is not a number where the context asks for it") {
  here at({1, 1, 1});
  at.account.fill_fresh = true;
  z_type single_precision(at, bound);
  tensor<double, pair> double_precision(at, bound);
  tensor<bf16, pair> half(at, bound);
  tensor<std::int32_t, pair> whole(at, bound);
  bool all_nan = true, all_far = true;
  for (std::int64_t i = 0; i < half.size(); ++i) {
    all_nan = all_nan && std::isnan(single_precision.data()[i]) &&
              std::isnan(double_precision.data()[i]) && std::isnan(float(half.data()[i]));
    all_far = all_far && whole.data()[i] == 0x7b7b7b7b;
  }
  CHECK(all_nan);
  CHECK(all_far);
}

TEST_CASE("from_local takes a block of the right size only") {
  here at({1, 2, 2}, {0, 0, 1});
  std::vector<float> const block(2 * 3 * 3 * 4, 1.5f);
  global_extents<4> const global{{2, 6, 6, 4}};
  auto const z = from_local<pair>(at, block.data(), std::int64_t(block.size()), global);
  CHECK(z.size() == 72);
  CHECK(z.data()[71] == 1.5f);
  std::int64_t const one_short = std::int64_t(block.size()) - 1;
  CHECK_THROWS_WITH(from_local<pair>(at, block.data(), one_short, global),
                    testing::contains("71 elements") && testing::contains("72"));
  CHECK(at.account.current_bytes == z.bytes());  // the refused tensor gave its memory back
}

TEST_CASE("a tensor that cannot be placed takes no memory") {
  here at({1, 1, 4});
  CHECK_THROWS_AS(z_type(at, bound), layout_error);
  CHECK_THROWS_WITH(z_type(at, bound), testing::contains("next extent that fits is 8"));
  CHECK_THROWS_AS(z_type(at, extents{bind<batch>(2), bind<tokens>(-8)}), layout_error);
  CHECK(at.account.current_bytes == 0);
  CHECK(at.account.peak_bytes == 0);
}

TEST_CASE("a tensor of no elements and a scalar") {
  here at({1, 2, 3});
  z_type empty(at, extents{bind<batch>(2), bind<tokens>(0)});
  CHECK(empty.size() == 0);
  CHECK(empty.clone().size() == 0);
  CHECK(at.account.current_bytes == 0);
  tensor<double, layout<grid, shape<>, replicate, replicate, replicate>> scalar(at, extents{});
  CHECK(scalar.size() == 1);
  scalar.to_local()() = 4;
  CHECK(scalar.data()[0] == 4);
}

TEST_CASE("planes are padded to the mesh, channels are not") {
  here at({1, 2, 3}, {0, 1, 2});
  tensor<float, layout<grid, shape<tokens, planes<8>>, replicate, shard<1>, shard<1>>> dealt(
      at, extents{bind<tokens>(5)});
  CHECK(dealt.global_extent(1) == 12);
  CHECK(dealt.size() == 5 * 2);
  CHECK(dealt.tile().begin[1] == 10);  // all padding: beyond the eight channels
}

TEST_CASE("a copy for the host that fails leaves nothing behind") {
  memory storage;
  storage.copy = [](void*, void*, void const*, std::size_t, copy_direction) {
    throw device_error("no device");
  };
  counted const elements[3];
  CHECK_THROWS_AS((host_copy<counted, cuda>(storage, elements, 3)), device_error);
  CHECK(counted::alive == 3);
}
