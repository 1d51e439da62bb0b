// Relative positions: integer features choose columns of one weight. Small limits, so that 12
// tokens reach the clamps.

#include "dtm/modules/relative_position_encoder.hpp"

#include "dtm/serial/relative_position_encoder.hpp"
#include "on_meshes.hpp"

namespace {

using namespace dtm;
using testing::grid;
using testing::place;

constexpr std::int64_t limit = 3, chain_limit = 1, channels = 5;
template <class T>
using encoder = relative_position_encoder<space<T, grid>, channels, limit, chain_limit>;

/// Three chains of which two are copies; only the last chain of the second sample is cyclic, where
/// one rank of two or three has it.
testing::draw_function features(bool cyclic) {
  return [cyclic](std::uint64_t key, place const& p) -> double {
    std::int64_t const token = p.index[1], chain = token / 5, feature = p.index[2];
    std::uint64_t const same_for_token =
        testing::bits(key, std::uint64_t(p.index[0] * 1000 + token / 2));
    switch (feature) {
      case 0:
        return double(chain);
      case 1:
        return double(token % 5 * 2) - double(same_for_token % 2);
      case 2:
        return double(chain % 2);
      case 3:
        return double(token);
      case 4:
        return double(chain / 2);
      default:
        return cyclic && p.index[0] == 1 && chain == 2 ? 4 : 0;
    }
  };
}

auto oracle(relative_position_options options) {
  return testing::serial_oracle(
      [options](auto t) {
        return serial::relative_position_encoder<decltype(t)>(
            channels, options.fix_sym_check, options.cyclic_pos_enc, limit, chain_limit);
      },
      [](auto& module, auto const& request, auto& gradients) {
        auto const all = request.integer(0);
        auto const feature = [&](std::int64_t f) {
          serial::array<std::int64_t> one({all.extent(0), all.extent(1)});
          for (std::int64_t i = 0; i < one.size(); ++i)
            one.values[std::size_t(i)] = all.values[std::size_t(6 * i + f)];
          return one;
        };
        auto [z, kept] = module.forward(
            {feature(0), feature(1), feature(2), feature(3), feature(4), feature(5)});
        module.backward(kept, request.upstream[0], gradients);
        using T = typename std::remove_cvref_t<decltype(module)>::value_type;
        return testing::serial_outcome<T>{{z}, {}};
      });
}

template <class T>
void run(relative_position_options options, bool cyclic) {
  testing::parity_plan plan;
  plan.title = std::string("relative_position_encoder, ") +
               (options.fix_sym_check ? "fixed" : "released") + " symmetry check, " +
               (cyclic ? "a cyclic chain" : "no cyclic chain");
  plan.draws["features"] = features(cyclic);
  plan.roundings = 4;
  testing::parity_on_meshes<encoder<T>>(oracle(options), testing::usual_extents(), plan, options);
}

}  // namespace

TEST_CASE("relative positions, fp64") {
  run<double>({true, true}, true);
  run<double>({true, true}, false);
  run<double>({false, true}, true);
}
TEST_CASE("relative positions, fp32") {
  run<float>({true, true}, true);
}
TEST_CASE("relative positions, bf16") {
  run<bf16>({true, true}, true);
}
