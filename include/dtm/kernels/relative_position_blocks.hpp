#pragma once
// The relative position encoder over blocks: a flag found by a whole block, and the gradient of the
// weight by chunks of pairs.

#include <cstdint>

#include "dtm/kernels/block.hpp"
#include "dtm/kernels/device_form.hpp"
#include "dtm/kernels/relative_position.hpp"

namespace dtm::kernels {

/// any_positive by one block.
struct any_positive_block {
  static constexpr int threads = 256;
  any_positive of;
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    bool found = false;
    for (std::int64_t i = block.thread(); i < of.count; i += block.size())
      found = found || of.x[i * of.stride] > 0;
    bool const anywhere = block.any(found);
    if (block.thread() == 0) *of.flag = anywhere ? 1 : 0;
  }
};

template <>
struct device_form<any_positive> {
  static launch_form<any_positive_block> of(any_positive const& kernel, std::int64_t count) {
    return {count > 0 ? 1 : 0, {kernel}};
  }
};

/// The gradient of the weight over a chunk of pairs: term[chunk, ch, column] = sum of dz[pair, ch]
/// over the pairs that select the column, in their order. A warp does 32 channels, a lane each, and
/// keeps the sums of `window` columns in shared memory; a wider weight takes another pass over the
/// pairs. Reads 1 (and 16 bytes a pair from cache); 4 flops; memory, at a quarter of its speed:
/// with their sums five warps fit a multiprocessor.
template <class T>
struct selected_column_sums {
  static constexpr int threads = warp_size;
  using A = accumulate_t<T>;
  static constexpr int window = sizeof(A) == 8 ? 160 : 288;
  static constexpr int pitch = warp_size + 1;
  static constexpr int ahead = 8;  // pairs whose numbers are on their way at once
  std::int32_t const* selected;
  T const* dz;
  std::int64_t pairs, width, channels, pairs_each;
  A* term;

  std::int64_t blocks() const {
    return ceil_divide(pairs, pairs_each) * ceil_divide(channels, warp_size);
  }
  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& sums = block.template shared<A, window * pitch, selected_column_sums>();
    std::int64_t const across = (channels + warp_size - 1) / warp_size;
    std::int64_t const group = block.index() % across * warp_size, chunk = block.index() / across;
    std::int64_t const begin = chunk * pairs_each;
    std::int64_t const end = begin + pairs_each < pairs ? begin + pairs_each : pairs;
    for (std::int64_t first = 0; first < width; first += window) {
      int const columns = int(width - first < window ? width - first : window);
      for (int column = 0; column < columns; ++column) sums[column * pitch + block.lane()] = A(0);
      for (std::int64_t pair = begin; pair < end; pair += ahead)
        add_pairs(sums, block.lane(), group, pair, end, first, columns);
      block.sync();
      // neighbours of the result are columns of one channel
      for (int e = block.lane(); e < columns * warp_size; e += warp_size) {
        int const ch = e / columns, column = e % columns;
        if (group + ch < channels)
          term[(chunk * channels + group + ch) * width + first + column] =
              sums[column * pitch + ch];
      }
      block.sync();
    }
  }

 private:
  template <class Sums>
  DTM_HD void add_pairs(Sums&& sums, int lane, std::int64_t group, std::int64_t pair,
                        std::int64_t end, std::int64_t first, int columns) const {
    A value[ahead];
    DTM_UNROLL
    for (int a = 0; a < ahead; ++a)
      value[a] = pair + a < end && group + lane < channels
                     ? A(dz[(pair + a) * channels + group + lane])
                     : A(0);
    for (int a = 0; a < ahead && pair + a < end; ++a) {
      std::int32_t const* const chosen = selected + (pair + a) * 4;
      for (int k = 0; k < 4; ++k) {
        std::int64_t const column = chosen[k] - first;
        if (chosen[k] < 0 || column < 0 || column >= columns) continue;
        A const before = sums[column * pitch + lane];
        sums[column * pitch + lane] = before + value[a];
      }
    }
  }
};

}  // namespace dtm::kernels
