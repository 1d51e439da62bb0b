// What the harness draws: the same on every mesh, and uneven where a fault could hide.

#include "dtm/testing/draw.hpp"

#include <set>

#include "dtm/core/space.hpp"
#include "dtm/host.hpp"
#include "dtm/testing/full_tensor.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

using grid = mesh<dp, cp0, cp1>;
template <class... Channels>
using pair = pair_tensor<space<double, grid>, Channels...>;

std::vector<int> sizes() {
  return ranks() == 9   ? std::vector<int>{1, 3, 3}
         : ranks() == 6 ? std::vector<int>{1, 2, 3}
                        : std::vector<int>{1, 1, ranks()};
}
auto const bound = extents{bind<batch>(2), bind<tokens>(12)};

}  // namespace

TEST_CASE("tiles and whole tensors hold the same numbers") {
  context<host, grid> ctx(world(), sizes());
  pair<c<3>> x(ctx, bound);
  for (auto const& draw : {draw_function(draw_activation), draw_function(draw_weight_mask),
                           with_padding(draw_activation, 8)}) {
    fill(x, draw, key_of(5, "x"));
    CHECK(full_tensor(ctx, x).values == fill_whole(x, draw, key_of(5, "x")).values);
  }
}

TEST_CASE("terms of a pending sum are uneven and sum to the value") {
  context<host, grid> ctx(world(), sizes());
  cotangent_t<single_tensor<space<float, grid>, c<3>>> ds(ctx, bound);
  std::uint64_t const key = key_of(1, "ds");
  fill(ds, draw_cotangent, key);
  CHECK(full_tensor(ctx, complete(ctx, ds)).values == fill_whole(ds, draw_cotangent, key).values);
  if (ctx.size<cp1>() > 2)  // the first coordinate holds half, the last does not
    CHECK(double(ds.data()[0]) ==
          fill_whole(ds, draw_cotangent, key).row(0, ds.tile().begin[1])[0] *
              (ctx.coordinate<cp1>() == 0 ? 0.5 : 0.25));
}

TEST_CASE("masks: padding that differs between samples, a masked row, a block, holes") {
  context<host, grid> ctx(world(), sizes());
  pair<> x(ctx, bound);
  for (auto const& draw : {draw_binary_mask, draw_weight_mask}) {
    auto const mask = fill_whole(x, draw, key_of(1, "mask"));
    for (std::int64_t b = 0; b < 2; ++b) {
      std::int64_t const length = b == 0 ? 8 : 10;
      double inside = 0;
      std::int64_t holes = 0;
      for (std::int64_t i = 0; i < 12; ++i)
        for (std::int64_t j = 0; j < 12; ++j) {
          bool const padded = i >= length || j >= length;
          if (padded || i == 3 || j == 3)
            CHECK(mask(b, i, j) == 0);
          else if (i < 2 && j >= 6 && j < 8)
            CHECK(mask(b, i, j) == 0);
          else
            inside += mask(b, i, j), holes += mask(b, i, j) == 0;
        }
      CHECK(inside > 10);
      CHECK(holes > 0);
    }
  }
}

TEST_CASE("activations differ in scale between the ranks") {
  context<host, grid> ctx(world(), sizes());
  pair<c<16>> x(ctx, bound);
  auto const values = fill_whole(x, draw_activation, key_of(1, "x"));
  auto const power = [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t channel = 0; channel < 16; ++channel)
        sum += values(b, i, j, channel) * values(b, i, j, channel);
    return sum;
  };
  CHECK(power(11, 0) > 3 * power(0, 0));
  CHECK(power(0, 0) > 1.3 * power(0, 11));
}

TEST_CASE("parameters: none stays at zero or one") {
  std::int64_t const vector[] = {8}, matrix[] = {16, 8};
  std::set<double> seen;
  for (std::uint64_t i = 0; i < 8; ++i) {
    seen.insert(draw_parameter("norm.weight", key_of(1, "norm.weight"), vector, i));
    seen.insert(draw_parameter("norm.bias", key_of(1, "norm.bias"), vector, i));
    seen.insert(draw_parameter("fc.weight", key_of(1, "fc.weight"), matrix, i));
  }
  CHECK(seen.size() == 24);
  CHECK(seen.count(0) + seen.count(1) == 0);
}

TEST_CASE("a replica that differs by a bit is named") {
  context<host, grid> ctx(world(), sizes());
  single_tensor<space<double, grid>, c<3>> s(ctx, bound);
  fill(s, draw_activation, 7);
  CHECK(gather(ctx, s).deviating.empty());
  if (ctx.size<cp1>() == 1) return;
  if (rank() == ranks() - 1) s.data()[1] *= 1 + 1e-15;
  CHECK(gather(ctx, s).deviating == std::vector<int>{ranks() - 1});
  CHECK_THROWS_AS(full_tensor(ctx, s), replication_error);
}
