// Values and errors that are the same on every rank.

#include <dtm/comm/agreement.hpp>

#include "fresh_world.hpp"
#include "support/catch.hpp"

using namespace dtm::comm;
using dtm::testing::contains;

static_assert(!std::is_constructible_v<agreed<int>, int>, "only agree_on makes an agreed value");
static_assert(std::is_convertible_v<agreed<int>, int>);

TEST_CASE("agree_on gives the value of the root to all") {
  auto& ranks = dtm::testing::world();
  struct point {
    double x;
    int y;
  };
  for (int root = 0; root < ranks.size(); ++root) {
    auto const steps = agree_on(ranks, ranks.rank() * 10, root);
    CHECK(steps == root * 10);
    auto const p = agree_on(ranks, point{0.5 * ranks.rank(), ranks.rank()}, root);
    CHECK((p.get().x == 0.5 * root && p.get().y == root));
  }
  CHECK_THROWS_AS(agree_on(ranks, 1, ranks.size()), dtm::argument_error);
}

TEST_CASE("agree turns one rank's error into the same error on all") {
  auto& ranks = dtm::testing::world();
  int const last = ranks.size() - 1;
  bool const odd = ranks.rank() == last;
  CHECK(agree(ranks, [&] { return ranks.rank() + 1; }) == ranks.rank() + 1);
  agree(ranks, [] {});
  agree(ranks, true, "");
  std::string const who = ranks.size() == 1 ? "" : "rank " + std::to_string(last) + " of";
  CHECK_THROWS_WITH(agree(ranks, !odd, "no space"), contains("no space") && contains(who));
  CHECK_THROWS_AS(agree(ranks,
                        [&] {
                          if (odd) throw dtm::file_error("a.safetensors: gone");
                          return 1.0;
                        }),
                  dtm::file_error);
  CHECK_THROWS_AS(agree(ranks,
                        [&] {
                          if (odd) throw dtm::layout_error("uneven");
                        }),
                  dtm::layout_error);
  CHECK_THROWS_AS(agree(ranks,
                        [&] {
                          if (odd) throw std::bad_alloc();
                        }),
                  dtm::error);
  CHECK_THROWS_WITH(agree(ranks,
                          [&] {
                            if (odd) throw 7;
                          }),
                    contains("no std::exception"));
  CHECK(!ranks.has_failed());
}

TEST_CASE("an error that all ranks share keeps its words; of several the lowest rank's is told") {
  auto& ranks = dtm::testing::world();
  CHECK_THROWS_WITH(agree(ranks, [] { throw dtm::argument_error("same"); }), "same");
  if (ranks.size() < 3) return;
  CHECK_THROWS_WITH(agree(ranks,
                          [&] {
                            if (ranks.rank() == 1) throw dtm::file_error("first");
                            if (ranks.rank() == 2) throw dtm::layout_error("second");
                          }),
                    "first (ranks 1, 2 of " + std::to_string(ranks.size()) + ")");
}

TEST_CASE("a text of any length is cut, not overrun") {
  auto& ranks = dtm::testing::world();
  CHECK_THROWS_WITH(agree(ranks, false, std::string(100'000, 'x')),
                    contains(std::string(1000, 'x')));
}
