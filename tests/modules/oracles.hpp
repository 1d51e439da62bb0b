#pragma once
// Oracles and draws of modules whose serial form has another shape than the usual one.

#include "dtm/modules/relative_position_encoder.hpp"

#include "dtm/serial/distogram_loss.hpp"
#include "dtm/serial/relative_position_encoder.hpp"
#include "on_meshes.hpp"

namespace dtm::testing {

/// Three chains of which two are copies. Only token 9 of the second sample has a cyclic period: rows
/// of the same chain lie on a rank that learns of it from another one.
inline draw_function position_features(bool cyclic) {
  return [cyclic](std::uint64_t key, place const& p) -> double {
    std::int64_t const token = p.index[1], chain = token / 5, feature = p.index[2];
    std::uint64_t const of_residue = bits(key, std::uint64_t(p.index[0] * 1000 + token / 2));
    switch (feature) {
      case 0:
        return double(chain);
      case 1:
        return double(token % 5 * 2) - double(of_residue % 2);
      case 2:
        return double(chain % 2);
      case 3:
        return double(token);
      case 4:
        return double(chain / 2);
      default:
        return cyclic && p.index[0] == 1 && token == 9 ? 4 : 0;
    }
  };
}

template <std::int64_t Channels, std::int64_t Limit, std::int64_t ChainLimit>
auto position_oracle(relative_position_options options) {
  return serial_oracle(
      [options](auto t) {
        return serial::relative_position_encoder<decltype(t)>(
            Channels, options.fix_sym_check, options.cyclic_pos_enc, Limit, ChainLimit);
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
        return serial_outcome<T>{{z}, {}};
      });
}

/// A distogram target: one bin a pair and conformer.
template <std::int64_t Bins>
double one_bin(std::uint64_t key, place const& p) {
  return double(bits(key, p.linear / Bins) % Bins == p.linear % Bins);
}

inline auto loss_oracle(bool aggregate) {
  return serial_oracle(
      [aggregate](auto t) { return serial::distogram_loss<decltype(t)>{aggregate}; },
      [](auto& loss, auto const& request, auto&) {
        using T = typename std::remove_cvref_t<decltype(loss)>::value_type;
        auto const result = loss.forward(request.real(0), request.real(1), request.real(2));
        auto dx = loss.backward(result.kept, request.upstream[0].values[0], request.upstream[1]);
        return serial_outcome<T>{
            {serial::array<T>({}, std::vector<T>{result.loss}), result.batch_loss}, {dx}};
      });
}

}  // namespace dtm::testing
