#pragma once
// Random numbers as a function of the global index (law L12): Philox 4x32-10, a counter-based
// generator. The key is (seed, draw), the counter (index, step): every mesh and every device draws
// the same bits. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/kernels/box.hpp"

namespace dtm::kernels {

struct random_words {
  std::uint32_t word[4];
};

/// Philox 4x32 with ten rounds: four words for a counter of four and a key of two.
DTM_HD constexpr random_words philox(random_words counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const first = std::uint64_t(0xD2511F53u) * counter.word[0],
                        second = std::uint64_t(0xCD9E8D57u) * counter.word[2];
    counter = {{std::uint32_t(second >> 32) ^ counter.word[1] ^ key0, std::uint32_t(second),
                std::uint32_t(first >> 32) ^ counter.word[3] ^ key1, std::uint32_t(first)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// Which stream of numbers: one for every draw of a program, such as one dropout of one layer.
struct random_stream {
  std::uint32_t seed, draw;
  std::uint64_t step;
  DTM_HD constexpr random_words at(std::uint64_t index) const {
    return philox({{std::uint32_t(index), std::uint32_t(index >> 32), std::uint32_t(step),
                    std::uint32_t(step >> 32)}},
                  seed, draw);
  }
};

/// Which draw of a dropout: `layer` counts the layers that have dropouts, `which` those of a layer.
struct dropout_draw {
  std::uint32_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t layer = 0;
  std::uint32_t which = 0;  // 0 to 3

  DTM_HD constexpr random_stream stream() const { return {seed, 4 * layer + which, step}; }
};

/// In [0, 1), a multiple of 2^-24 (float) or 2^-53 (double): every operation is exact.
template <class A>
struct uniform;
template <>
struct uniform<float> {
  DTM_HD static constexpr float of(random_words const& w) {
    return float(w.word[0] >> 8) * 0x1p-24f;
  }
};
template <>
struct uniform<double> {
  DTM_HD static constexpr double of(random_words const& w) {
    return double((std::uint64_t(w.word[1]) << 32 | w.word[0]) >> 11) * 0x1p-53;
  }
};

/// y[i] = uniform number of the i-th element of a tile, by its place in the whole tensor: the walk
/// is box_walk<Rank>::of(whole tensor, tile). Writes 1; 60 integer operations; arithmetic.
template <class T, int Rank>
struct draw_uniform {
  random_stream stream;
  box_walk<Rank> walk;
  T* y;
  DTM_HD void operator()(std::int64_t i) const {
    y[i] = T(uniform<accumulate_t<T>>::of(stream.at(std::uint64_t(walk.offset(i)))));
  }
};

}  // namespace dtm::kernels
