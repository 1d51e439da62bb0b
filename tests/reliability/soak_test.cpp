// No false alarm: random operations with random delays up to a quarter of the deadline, more ranks
// than cores.

#include <dtm/comm/agreement.hpp>
#include <dtm/comm/mesh_groups.hpp>

#include <cstdlib>
#include <random>
#include <thread>

#include "comm/fresh_world.hpp"
#include "comm/test_mesh.hpp"
#include "support/catch.hpp"

using namespace dtm::comm;

TEST_CASE("random delays below the deadline raise no alarm") {
  char const* const wanted = std::getenv("DTM_SOAK_OPERATIONS");
  int const operations = wanted ? std::atoi(wanted) : 300;
  double const deadline = 2;
  auto const got =
      dtm::testing::attempt(dtm::testing::settings(check_level::data, deadline), [&](world& w) {
        int const side = w.size() == 9 ? 3 : 2;
        dtm::testing::test_mesh mesh(w, {"cp0", "cp1"}, {side, w.size() / side});
        std::mt19937 same(7), mine(100u + unsigned(w.rank()));
        double sum = 0;
        for (int i = 0; i < operations; ++i) {
          auto& g = mesh.along(1 + same() % 3);
          std::int64_t const count = 1 + same() % 2000;
          unsigned const kind = same() % 5;
          unsigned const late =
              mine() % 400;  // now and then a quarter of the deadline, mostly little
          if (late == 0)
            std::this_thread::sleep_for(std::chrono::duration<double>(deadline / 4));
          else if (late < 100)
            std::this_thread::sleep_for(std::chrono::microseconds(mine() % 2000));
          std::vector<double> in(std::size_t(count * g.size()), g.rank() + 1.0), out(in.size());
          std::vector<std::int64_t> const even(std::size_t(g.size()), count);
          int const right = (g.rank() + 1) % g.size(), left = (g.rank() + g.size() - 1) % g.size();
          double const everyone = g.size() * (g.size() + 1) / 2;
          if (kind == 0) {
            g.all_reduce(in.data(), out.data(), count, reduction::sum, {"all_reduce", "x"}).wait();
            CHECK(out[0] == everyone);
          }
          if (kind == 1) {
            g.all_gather(in.data(), out.data(), count, {"all_gather", "x"}).wait();
            CHECK(out.back() == g.size());
          }
          if (kind == 2) {
            g.all_to_all(in.data(), even, out.data(), even, {"all_to_all", "x"}).wait();
            CHECK(out.back() == g.size());
          }
          if (kind == 3) {
            g.shift(in.data(), out.data(), count, right, left, {"shift", "x"}).wait();
            CHECK(out[0] == left + 1);
          }
          if (kind == 4) sum += agree_on(w, double(i), int(i % w.size()));
        }
        agree(w, sum >= 0, "");
      });
  CHECK(got.text == "");
}
