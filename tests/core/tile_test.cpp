// Which block a rank holds (law L8): order of two axes on one dimension, even shards and what the
// refusal says.
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/place.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

using grid = mesh<dp, cp0, cp1>;
using pair = layout<grid, shape<batch, tokens, tokens, c<8>>, shard<0>, shard<1>, shard<2>>;

template <class Layout>
box<Layout::rank> tile_at(global_extents<Layout::rank> const& global, std::vector<int> const& sizes,
                          std::vector<int> const& coordinates) {
  return tile_of<Layout>(global, sizes.data(), coordinates.data());
}

template <class Layout>
std::string refusal(global_extents<Layout::rank> const& wanted, std::vector<int> const& sizes) {
  try {
    checked_extents<Layout>(wanted, sizes.data());
  } catch (layout_error const& refused) {
    return refused.what();
  }
  return "";
}

// Visits every coordinate of a mesh of three axes.
template <class Visit>
void each_rank(std::vector<int> const& sizes, Visit visit) {
  for (int a = 0; a < sizes[0]; ++a)
    for (int b = 0; b < sizes[1]; ++b)
      for (int d = 0; d < sizes[2]; ++d) visit(std::vector<int>{a, b, d});
}

}  // namespace

TEST_CASE("a pair tile is a block of rows and a block of columns") {
  global_extents<4> const global{{2, 12, 12, 8}};
  auto const tile = tile_at<pair>(global, {2, 2, 3}, {1, 0, 2});
  CHECK(tile.begin[0] == 1);
  CHECK(tile.end[0] == 2);
  CHECK(tile.begin[1] == 0);
  CHECK(tile.end[1] == 6);
  CHECK(tile.begin[2] == 8);
  CHECK(tile.end[2] == 12);
  CHECK(tile.begin[3] == 0);
  CHECK(tile.end[3] == 8);
  CHECK(tile.size() == 1 * 6 * 4 * 8);
}

TEST_CASE("tiles of all ranks cover the tensor once") {
  std::vector<int> const sizes = GENERATE(std::vector<int>{1, 1, 1}, std::vector<int>{2, 2, 2},
                                          std::vector<int>{1, 2, 3}, std::vector<int>{1, 3, 3});
  using rows_twice = layout<grid, shape<batch, tokens, c<4>>, shard<0>, shard<1>, shard<1>>;
  global_extents<3> const global{{2, 36, 4}};
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  std::int64_t visits = 0;
  each_rank(sizes, [&](std::vector<int> const& coordinates) {
    auto const tile = tile_at<rows_twice>(global, sizes, coordinates);
    for (auto i = tile.begin[0]; i < tile.end[0]; ++i)
      for (auto j = tile.begin[1]; j < tile.end[1]; ++j)
        for (auto k = tile.begin[2]; k < tile.end[2]; ++k, ++visits) seen.emplace(i, j, k);
  });
  CHECK(seen.size() == 2 * 36 * 4);
  CHECK(visits == 2 * 36 * 4);
}

TEST_CASE("of two axes on one dimension the earlier one in the mesh is the major one") {
  using rows = layout<grid, shape<tokens>, replicate, shard<0>, shard<0>>;
  global_extents<1> const global{{12}};
  std::vector<int> const sizes{1, 2, 3};
  std::int64_t expected = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j, expected += 2) {
      auto const tile = tile_at<rows>(global, sizes, {0, i, j});
      CHECK(tile.begin[0] == expected);
      CHECK(tile.end[0] == expected + 2);
    }
  // the order is the mesh's, not that of the placements' first use
  using turned = layout<mesh<cp1, cp0>, shape<tokens>, shard<0>, shard<0>>;
  CHECK(tile_at<turned>(global, {3, 2}, {2, 0}).begin[0] == 8);
  CHECK(tile_at<turned>(global, {3, 2}, {0, 1}).begin[0] == 2);
}

TEST_CASE("a replicated or pending axis does not split") {
  using kept = layout<grid, shape<tokens, c<4>>, replicate, partial<sum>, shard<0>>;
  auto const tile = tile_at<kept>({{6, 4}}, {2, 2, 3}, {1, 1, 1});
  CHECK(tile.begin[0] == 2);
  CHECK(tile.end[0] == 4);
  CHECK(tile.extent(1) == 4);
}

TEST_CASE("an uneven shard names dimension, extent, axis, size and the next extent") {
  std::string const text = refusal<pair>({{1, 10, 10, 8}}, {1, 1, 4});
  CHECK_THAT(text, testing::contains("dimension N"));
  CHECK_THAT(text, testing::contains("extent 10"));
  CHECK_THAT(text, testing::contains("4 shards"));
  CHECK_THAT(text, testing::contains("axis cp1"));
  CHECK_THAT(text, testing::contains("next extent that fits is 12"));

  using twice = layout<grid, shape<atoms, c<8>>, replicate, shard<0>, shard<0>>;
  std::string const both = refusal<twice>({{14, 8}}, {1, 2, 3});
  CHECK_THAT(both, testing::contains("dimension A"));
  CHECK_THAT(both, testing::contains("extent 14"));
  CHECK_THAT(both, testing::contains("6 shards"));
  CHECK_THAT(both, testing::contains("cp0*cp1"));
  CHECK_THAT(both, testing::contains("18"));

  using channels = layout<grid, shape<tokens, c<8>>, replicate, shard<1>, replicate>;
  CHECK_THAT((refusal<channels>({{3, 0}}, {1, 3, 1})),
             testing::contains("next extent that fits is 9"));
}

TEST_CASE("extents that are not possible are refused") {
  CHECK_THAT(refusal<pair>({{1, -4, 4, 8}}, {1, 1, 1}), testing::contains("negative extent -4"));
  CHECK_THAT(refusal<pair>({{-1, 4, 4, 8}}, {1, 1, 1}), testing::contains("dimension B"));
}

TEST_CASE("an empty dimension divides by anything") {
  CHECK(refusal<pair>({{1, 0, 0, 8}}, {1, 2, 3}).empty());
  auto const tile = tile_at<pair>({{1, 0, 0, 8}}, {1, 2, 3}, {0, 1, 2});
  CHECK(tile.size() == 0);
}

TEST_CASE("channels, pinned dimensions and planes settle themselves") {
  std::vector<int> const sizes{1, 2, 3};
  using fixed = layout<grid, shape<batch, pinned<tokens, 6>, c<8>>, replicate, shard<1>, replicate>;
  CHECK(checked_extents<fixed>({{5, 0, 0}}, sizes.data()) == global_extents<3>{{5, 6, 8}});

  using plane_of_six = layout<grid, shape<tokens, planes<8>>, replicate, shard<1>, shard<1>>;
  CHECK(checked_extents<plane_of_six>({{4, 0}}, sizes.data()) == global_extents<2>{{4, 12}});
  using plane_of_two = layout<grid, shape<tokens, planes<8>>, replicate, shard<1>, replicate>;
  CHECK(checked_extents<plane_of_two>({{4, 0}}, sizes.data()) == global_extents<2>{{4, 8}});
  using plane_of_three = layout<grid, shape<tokens, planes<1>>, replicate, replicate, shard<1>>;
  CHECK(checked_extents<plane_of_three>({{4, 0}}, sizes.data()) == global_extents<2>{{4, 3}});
  // a second settling changes nothing
  CHECK(checked_extents<plane_of_six>({{4, 12}}, sizes.data()) == global_extents<2>{{4, 12}});
}

TEST_CASE("a tensor without dimensions has one element on every rank") {
  using scalar = layout<grid, shape<>, partial<sum>, replicate, replicate>;
  std::vector<int> const sizes{2, 2, 2};
  CHECK(checked_extents<scalar>({}, sizes.data()) == global_extents<0>{});
  CHECK(tile_at<scalar>({}, sizes, {1, 0, 1}).size() == 1);
}

TEST_CASE("extents beyond 32 bits") {
  using long_rows = layout<grid, shape<atoms, c<128>>, replicate, shard<0>, shard<0>>;
  std::int64_t const extent = std::int64_t{3} << 33;
  auto const tile = tile_at<long_rows>({{extent, 128}}, {1, 2, 2}, {0, 1, 1});
  CHECK(tile.begin[0] == extent / 4 * 3);
  CHECK(tile.size() == extent / 4 * 128);
}

TEST_CASE("boxes intersect") {
  box<2> const a{{0, 4}, {6, 8}}, b{{2, 6}, {9, 20}}, apart{{6, 0}, {7, 9}};
  auto const both = intersection(a, b);
  CHECK(both.begin[0] == 2);
  CHECK(both.end[1] == 8);
  CHECK(both.size() == 8);
  CHECK(intersection(a, apart).size() == 0);
}
