// The plans of exchanges, without a message: every rank's plan is computed in one process, on every
// mesh up to 4 x 6.
//
//   every element of a result is received exactly once, from a rank that holds it
//   what p sends to q is what q expects of p
//   the plan back undoes the plan
//   the volume is (1 - 1/P) of a tile, in the mean over the ranks, for an exchange that keeps the
//   least

#include <string>
#include <vector>

#include "dtm/host.hpp"
#include "support/catch.hpp"

using namespace dtm;

namespace {

using grid = mesh<cp0, cp1>;
template <class Shape, class A, class B>
using placed = layout<grid, Shape, A, B>;
using pair_shape = shape<tokens, tokens, c<5>>;
using plane_shape = shape<tokens, tokens, planes<5>>;

template <class Source>
using plan_type = comm::exchange_plan<Source::rank>;

/// The plans of all ranks, in rank order.
template <class Source, class Target, class Serves>
std::vector<plan_type<Source>> all_plans(site<grid> here,
                                         global_extents<Source::rank> const& global,
                                         Serves serves) {
  std::vector<plan_type<Source>> plans;
  for (int i = 0; i < here.sizes[0]; ++i)
    for (int j = 0; j < here.sizes[1]; ++j) {
      here.coordinates[0] = i;
      here.coordinates[1] = j;
      plans.push_back(
          comm::plan_exchange<Source, Target>(here, 3u, checked_extents<Source>(global, here.sizes),
                                              checked_extents<Target>(global, here.sizes), serves));
    }
  return plans;
}

template <class Layout>
std::vector<box<Layout::rank>> all_tiles(site<grid> here,
                                         global_extents<Layout::rank> const& global) {
  std::vector<box<Layout::rank>> tiles;
  auto const extents = checked_extents<Layout>(global, here.sizes);
  for (int i = 0; i < here.sizes[0]; ++i)
    for (int j = 0; j < here.sizes[1]; ++j) {
      int const there[] = {i, j};
      tiles.push_back(comm::without_padding(tile_of<Layout>(extents, here.sizes, there),
                                            typename Layout::shape_type{}));
    }
  return tiles;
}

template <int Rank>
bool same_box(box<Rank> const& a, box<Rank> const& b) {
  if (a.size() == 0 && b.size() == 0) return true;
  for (int d = 0; d < Rank; ++d)
    if (a.begin[d] != b.begin[d] || a.end[d] != b.end[d]) return false;
  return true;
}
template <int Rank>
bool inside(box<Rank> const& part, box<Rank> const& whole) {
  return part.size() == 0 || intersection(part, whole).size() == part.size();
}

/// Every element of the tile is in exactly one of the boxes.
template <int Rank>
bool covers_once(std::vector<box<Rank>> const& parts, box<Rank> const& tile) {
  std::int64_t sum = 0;
  for (std::size_t a = 0; a < parts.size(); ++a) {
    sum += parts[a].size();
    if (!inside(parts[a], tile)) return false;
    for (std::size_t b = 0; b < a; ++b)
      if (intersection(parts[a], parts[b]).size() > 0) return false;
  }
  return sum == tile.size();
}

/// Empty, or the first property that a mesh breaks.
template <class Source, class Target, class Serves>
std::string broken(site<grid> const& here, global_extents<Source::rank> const& global,
                   Serves serves) {
  auto const plans = all_plans<Source, Target>(here, global, serves);
  auto const held = all_tiles<Source>(here, global), wanted = all_tiles<Target>(here, global);
  for (std::size_t p = 0; p < plans.size(); ++p) {
    if (!covers_once(plans[p].receive, wanted[p])) return "an element is not received exactly once";
    std::int64_t sent = 0, received = 0;
    for (std::size_t q = 0; q < plans.size(); ++q) {
      if (!same_box(plans[p].send[q], plans[q].receive[p])) return "sent and expected differ";
      if (!inside(plans[p].send[q], held[p])) return "a rank sends what it does not hold";
      if (plans[p].send_counts[q] != plans[p].send[q].size()) return "a count to send is wrong";
      if (plans[p].receive_counts[q] != plans[p].receive[q].size())
        return "a count to receive is wrong";
      sent += plans[p].send_counts[q];
      received += plans[p].receive_counts[q];
    }
    if (sent != plans[p].sent || received != plans[p].received) return "a total is wrong";
  }
  return "";
}

/// Where both layouts are sharded by all axes: the plan back sends what the plan received.
template <class Source, class Target>
std::string broken_both_ways(site<grid> const& here, global_extents<Source::rank> const& global) {
  auto const always = [](int const*, int const*) { return true; };
  auto problem = broken<Source, Target>(here, global, always);
  if (problem.empty()) problem = broken<Target, Source>(here, global, always);
  if (!problem.empty()) return problem;
  auto const there = all_plans<Source, Target>(here, global, always);
  auto const back = all_plans<Target, Source>(here, global, always);
  for (std::size_t p = 0; p < there.size(); ++p)
    for (std::size_t q = 0; q < there.size(); ++q)
      if (!same_box(there[p].receive[q], back[p].send[q]) ||
          !same_box(there[p].send[q], back[p].receive[q]))
        return "the way back is another one";
  return "";
}

template <class Source, class Target>
std::int64_t moved(site<grid> const& here, global_extents<Source::rank> const& global) {
  auto const plans =
      all_plans<Source, Target>(here, global, [](int const*, int const*) { return true; });
  std::int64_t sum = 0;
  for (std::size_t p = 0; p < plans.size(); ++p) sum += plans[p].sent - plans[p].send_counts[p];
  return sum;
}

template <class Visit>
void on_every_mesh(Visit visit) {
  for (int rows = 1; rows <= 4; ++rows)
    for (int columns = 1; columns <= 6; ++columns) {
      site<grid> here;
      here.sizes[0] = rows;
      here.sizes[1] = columns;
      INFO("mesh " << rows << " x " << columns);
      visit(here, std::int64_t(rows), std::int64_t(columns));
    }
}

}  // namespace

TEST_CASE("an exchange between two dimensions receives every element once") {
  using source = placed<pair_shape, shard<0>, shard<1>>;
  on_every_mesh([](site<grid> const& here, std::int64_t rows, std::int64_t columns) {
    std::int64_t const n = rows * columns * 2;
    global_extents<3> const global{{n, n, 5}};
    CHECK(broken_both_ways<source, placed<pair_shape, shard<0>, shard<0>>>(here, global) == "");
    CHECK(broken_both_ways<source, placed<pair_shape, shard<1>, shard<1>>>(here, global) == "");
    CHECK(broken_both_ways<source, placed<pair_shape, shard<1>, shard<0>>>(here, global) == "");
    CHECK(broken_both_ways<placed<pair_shape, shard<0>, shard<0>>,
                           placed<pair_shape, shard<1>, shard<1>>>(here, global) == "");
  });
}

TEST_CASE("channels that do not divide go to planes and back") {
  using source = placed<pair_shape, shard<0>, shard<1>>;
  on_every_mesh([](site<grid> const& here, std::int64_t rows, std::int64_t columns) {
    global_extents<3> const global{{rows * 3, columns * 2, 5}};
    CHECK(broken_both_ways<source, placed<plane_shape, shard<2>, shard<2>>>(here, global) == "");
    CHECK(broken_both_ways<source, placed<plane_shape, shard<2>, shard<1>>>(here, global) == "");
    CHECK(broken_both_ways<source, placed<plane_shape, shard<0>, shard<2>>>(here, global) == "");
  });
}

TEST_CASE("the padding of planes stays at home when another dimension moves") {
  using source = placed<plane_shape, shard<0>, shard<2>>;
  using target = placed<plane_shape, shard<1>, shard<2>>;
  on_every_mesh([](site<grid> const& here, std::int64_t rows, std::int64_t) {
    global_extents<3> const global{{rows * 2, rows * 3, 5}};
    CHECK(broken_both_ways<source, target>(here, global) == "");
    CHECK(moved<source, target>(here, global) == (rows - 1) * global[0] * global[1] * 5 / rows);
  });
}

TEST_CASE("the volume of an exchange is the tile less what stays") {
  using source = placed<pair_shape, shard<0>, shard<1>>;
  using channels = placed<plane_shape, shard<2>, shard<2>>;
  on_every_mesh([](site<grid> const& here, std::int64_t rows, std::int64_t columns) {
    std::int64_t const ranks = rows * columns;
    global_extents<3> const global{{rows * 3, columns * 2, 5}};
    // over all ranks: every element once, less the 1/P of each plane that its owner holds already
    CHECK(moved<source, channels>(here, global) == global[0] * global[1] * 5 * (ranks - 1) / ranks);
    CHECK(moved<channels, source>(here, global) == global[0] * global[1] * 5 * (ranks - 1) / ranks);
  });
}

TEST_CASE("a row form becomes a column form with every block received once, on any mesh") {
  using vector_shape = shape<tokens, c<5>>;
  using rows_form = placed<vector_shape, shard<0>, replicate>;
  using columns_form = placed<vector_shape, replicate, shard<0>>;
  on_every_mesh([](site<grid> const& here, std::int64_t rows, std::int64_t columns) {
    global_extents<2> const global{{rows * columns * 2, 5}};
    CHECK(broken<rows_form, columns_form>(here, global,
                                          comm::detail::serving_replica<0, 1>{int(columns)}) == "");
    CHECK(broken<columns_form, rows_form>(here, global,
                                          comm::detail::serving_replica<1, 0>{int(rows)}) == "");
  });
}

TEST_CASE("on a square mesh a rank on the diagonal sends nothing when forms change places") {
  using vector_shape = shape<tokens, c<5>>;
  site<grid> here;
  for (int n = 1; n <= 5; ++n) {
    here.sizes[0] = here.sizes[1] = n;
    auto const plans = all_plans<placed<vector_shape, shard<0>, replicate>,
                                 placed<vector_shape, replicate, shard<0>>>(
        here, global_extents<2>{{n * 2, 5}}, comm::detail::serving_replica<0, 1>{n});
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        auto const& plan = plans[std::size_t(i * n + j)];
        CHECK(plan.sent - plan.send_counts[std::size_t(i * n + j)] == (i == j ? 0 : 10));
      }
  }
}

namespace {

/// Packs a part of a tile, unpacks it once and adds it once: the part doubled, zero elsewhere.
bool survives(std::vector<int> const& data, box<4> const& tile, box<4> const& part) {
  std::vector<int> packed(data.size() + 1, -1), result(data.size(), 0);
  int const* const start = packed.data();
  int const* const end = comm::pack(data.data(), tile, part, packed.data());
  if (end - start != part.size() || *end != -1) return false;
  if (comm::unpack(start, result.data(), tile, part) != end) return false;
  if (comm::unpack_add(start, result.data(), tile, part) != end) return false;
  for (std::int64_t at = 0; at < tile.size(); ++at) {
    bool in = true;
    std::int64_t rest = at;
    for (int d = 3; d >= 0; rest /= tile.extent(d), --d) {
      std::int64_t const index = tile.begin[d] + rest % tile.extent(d);
      in = in && index >= part.begin[d] && index < part.end[d];
    }
    if (result[std::size_t(at)] != (in ? 2 * data[std::size_t(at)] : 0)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("packing a box of a tile and unpacking it gives the box back, for every box") {
  box<4> const tile{{2, 3, 0, 0}, {4, 6, 4, 5}};
  std::vector<int> data(std::size_t(tile.size()));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = int(i) + 1;
  std::vector<box<4>> parts{tile};
  for (int d = 0; d < 4; ++d) {
    std::vector<box<4>> more;
    for (auto part : parts)
      for (part.begin[d] = tile.begin[d]; part.begin[d] < tile.end[d]; ++part.begin[d])
        for (part.end[d] = part.begin[d]; part.end[d] <= tile.end[d]; ++part.end[d])
          more.push_back(part);
    parts = std::move(more);
  }
  CHECK(parts.size() == 5 * 9 * 14 * 20);
  std::int64_t wrong = 0;
  for (auto const& part : parts) wrong += !survives(data, tile, part);
  CHECK(wrong == 0);
}
