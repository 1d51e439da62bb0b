#pragma once
// What the kernels of attention are made of. A warp has 16 positions of its own (queries, or keys in
// the adjoint of keys and values), `Others` positions stand in shared memory, and a tile of scores is
// 16 x Others, in registers, distributed as sums of mma are (mma_tile): lane l has the rows l / 4 and
// l / 4 + 8, and of every eight columns 2 (l % 4) and the next. A tile is
//
//   scores     own . others^T                     sums over the channels of a head
//   products   result += tile . others            sums over the others, 16 x channels
//
// attention_tiles<bf16>: on the matrix units. A tile's sums become the next product's left operand
// without leaving their lanes; operands of both kinds of product are held as pairs of neighbours, along
// the channels for scores, along the positions for products.
// attention_tiles<float>, <double>: plain arithmetic. Own rows are read where they lie, a tile goes
// through shared memory on its way into a product.
//
// Heads have up to Width channels; those that are missing, and positions beyond the last, count as 0.

#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/block.hpp"

namespace dtm::kernels {

/// Warps of a block, and positions that it owns.
inline constexpr int attention_warps = 4;
inline constexpr int attention_threads = attention_warps * warp_size;
inline constexpr int attention_owned = attention_warps * mma_tile::rows;

/// The positions of a head in a row. `aligned`: eight channels of any position may be read at once.
template <class T>
struct head_positions {
  T const* first;
  std::int64_t step, count;
  int width;
  bool aligned;

  DTM_HD T at(std::int64_t position, int channel) const {
    return position < count && channel < width ? first[position * step + channel] : T{};
  }
  template <int Length, class Block>
  DTM_HD vector<T, Length> some(Block& block, std::int64_t position, int channel) const {
    if (aligned && position < count && channel < width)
      return block.template load<Length>(first + position * step + channel);
    vector<T, Length> result;
    DTM_UNROLL
    for (int n = 0; n < Length; ++n) result[n] = at(position, channel + n);
    return result;
  }
};

/// A tile's rows and columns of a lane.
struct tile_place {
  std::int64_t first;   // row of the warp
  std::int64_t row[2];  // of elements 0 and 1, 2 and 3
  int column;           // of elements 0 and 2 of the first eight columns
  template <class Block>
  DTM_HD tile_place(Block& block, std::int64_t first_of_block)
      : first(first_of_block + block.warp() * mma_tile::rows),
        row{first + mma_tile::d_row(block.lane(), 0), first + mma_tile::d_row(block.lane(), 2)},
        column(mma_tile::d_column(block.lane(), 0)) {}
};

/// Four sums of a lane, as mma_tile::sum has them in float.
template <class A>
struct tile_sum {
  A element[4];
};
template <class Sum, int Count>
DTM_HD void set_zero_sums(Sum (&sums)[Count]) {
  DTM_UNROLL
  for (int t = 0; t < Count; ++t) sums[t] = Sum{{0, 0, 0, 0}};
}

template <class T, int Width, int Others>
struct attention_tiles {
  static constexpr int across = Others / mma_tile::columns, of_channels = Width / mma_tile::columns;
  static constexpr int length = int(16 / sizeof(T));
  static constexpr int pitch = Width + 4, tile_pitch = Others + 4;
  using sum = tile_sum<T>;
  template <class Tag>
  struct held_tag {};
  struct weight_tag {};

  /// The warp's own rows.
  struct owned {
    head_positions<T> of;
    std::int64_t row[2];
    template <class Block>
    DTM_HD void load(Block& block, head_positions<T> const& positions, std::int64_t first) {
      tile_place const at(block, first);
      of = positions;
      row[0] = at.row[0];
      row[1] = at.row[1];
    }
  };

  /// Others [first, first + Others) into the shared array of a tag, for scores, products or both.
  template <class Tag, bool, bool, class Block>
  DTM_HD static void fill(Block& block, head_positions<T> const& of, std::int64_t first) {
    auto&& held = block.template shared<T, Others * pitch, held_tag<Tag>>();
    for (int e = block.thread(); e < Others * Width; e += attention_threads)
      held[e / Width * pitch + e % Width] = of.at(first + e / Width, e % Width);
  }

  template <class Tag, class Block>
  DTM_HD static void scores(Block& block, owned const& own, sum (&s)[across]) {
    auto&& held = block.template shared<T, Others * pitch, held_tag<Tag>>();
    set_zero_sums(s);
    DTM_KEEP_LOOP
    for (int c = 0; c < own.of.width; c += length) {
      vector<T, length> left[2];
      DTM_UNROLL
      for (int half = 0; half < 2; ++half) {
        DTM_UNROLL
        for (int k = 0; k < length; ++k) left[half][k] = own.of.at(own.row[half], c + k);
      }
      DTM_UNROLL
      for (int t = 0; t < across; ++t) {
        DTM_UNROLL
        for (int e = 0; e < 2; ++e) {
          int const column = t * mma_tile::columns + mma_tile::d_column(block.lane(), e);
          auto const right = block.template load<length>(&held[column * pitch + c]);
          DTM_UNROLL
          for (int k = 0; k < length; ++k) {
            s[t].element[e] += left[0][k] * right[k];
            s[t].element[e + 2] += left[1][k] * right[k];
          }
        }
      }
    }
  }

  /// A tile as left operand of a product. The warp's last one is no longer in use then.
  struct weights {};
  template <class Block>
  DTM_HD static weights as_weights(Block& block, sum const (&s)[across]) {
    auto&& tile = weight_array(block);
    block.sync_warp();
    DTM_UNROLL
    for (int t = 0; t < across; ++t) {
      DTM_UNROLL
      for (int e = 0; e < 4; ++e)
        tile[row_of(block, e / 2) * tile_pitch + t * mma_tile::columns +
             mma_tile::d_column(block.lane(), e)] = s[t].element[e];
    }
    block.sync_warp();
    return {};
  }

  template <class Tag, class Block>
  DTM_HD static void add_products(Block& block, weights const&, int width,
                                  sum (&result)[of_channels]) {
    auto&& held = block.template shared<T, Others * pitch, held_tag<Tag>>();
    auto&& tile = weight_array(block);
    int const column = mma_tile::d_column(block.lane(), 0);
    DTM_KEEP_LOOP
    for (int k = 0; k < Others; k += length) {
      auto const upper = block.template load<length>(&tile[row_of(block, 0) * tile_pitch + k]);
      auto const lower = block.template load<length>(&tile[row_of(block, 1) * tile_pitch + k]);
      DTM_UNROLL
      for (int n = 0; n < length; ++n) {
        DTM_UNROLL
        for (int t = 0; t < of_channels; ++t) {
          if (t * mma_tile::columns >= width) continue;
          auto const right =
              block.template load<2>(&held[(k + n) * pitch + t * mma_tile::columns + column]);
          DTM_UNROLL
          for (int e = 0; e < 2; ++e) {
            result[t].element[e] += upper[n] * right[e];
            result[t].element[e + 2] += lower[n] * right[e];
          }
        }
      }
    }
  }

 private:
  // 16 rows a warp
  template <class Block>
  DTM_HD static decltype(auto) weight_array(Block& block) {
    return block.template shared<T, attention_owned * tile_pitch, weight_tag>();
  }
  template <class Block>
  DTM_HD static int row_of(Block& block, int half) {
    return block.warp() * mma_tile::rows + mma_tile::d_row(block.lane(), 2 * half);
  }
};

template <int Width, int Others>
struct attention_tiles<bf16, Width, Others> {
  static constexpr int across = Others / mma_tile::columns, of_channels = Width / mma_tile::columns;
  static constexpr int of_inner = Width / mma_tile::inner, of_others = Others / mma_tile::inner;
  static constexpr int length = 8;
  static constexpr int score_pitch = Width / 2 + 4, product_pitch = Others / 2 + 4;
  using sum = mma_tile::sum;
  using pair = vector<bf16, 2>;
  template <class Tag>
  struct score_tag {};
  template <class Tag>
  struct product_tag {};

  struct owned {
    mma_tile::left part[of_inner];
    template <class Block>
    DTM_HD void load(Block& block, head_positions<bf16> const& of, std::int64_t first) {
      DTM_UNROLL
      for (int step = 0; step < of_inner; ++step) {
        DTM_UNROLL
        for (int i = 0; i < 8; i += 2) {
          auto const two = of.template some<2>(
              block, first + block.warp() * mma_tile::rows + mma_tile::a_row(block.lane(), i),
              step * mma_tile::inner + mma_tile::a_inner(block.lane(), i));
          part[step][i] = two[0];
          part[step][i + 1] = two[1];
        }
      }
    }
  };

  template <class Tag, bool Scores, bool Products, class Block>
  DTM_HD static void fill(Block& block, head_positions<bf16> const& of, std::int64_t first) {
    if constexpr (Scores) fill_for_scores<Tag>(block, of, first);
    if constexpr (Products) fill_for_products<Tag>(block, of, first);
  }

  template <class Tag, class Block>
  DTM_HD static void scores(Block& block, owned const& own, sum (&s)[across]) {
    auto&& held = block.template shared<pair, Others * score_pitch, score_tag<Tag>>();
    set_zero_sums(s);
    DTM_UNROLL
    for (int t = 0; t < across; ++t) {
      DTM_UNROLL
      for (int step = 0; step < of_inner; ++step)
        block.mma(s[t], own.part[step],
                  right_operand(block, held, t * mma_tile::columns, score_pitch, step));
    }
  }

  struct weights {
    mma_tile::left part[of_others];
  };
  template <class Block>
  DTM_HD static weights as_weights(Block&, sum const (&s)[across]) {
    weights result;
    DTM_UNROLL
    for (int step = 0; step < of_others; ++step) {
      DTM_UNROLL
      for (int i = 0; i < 8; ++i) result.part[step][i] = bf16(s[2 * step + i / 4].element[i % 4]);
    }
    return result;
  }

  template <class Tag, class Block>
  DTM_HD static void add_products(Block& block, weights const& w, int, sum (&result)[of_channels]) {
    auto&& held = block.template shared<pair, Width * product_pitch, product_tag<Tag>>();
    DTM_UNROLL
    for (int t = 0; t < of_channels; ++t) {
      DTM_UNROLL
      for (int step = 0; step < of_others; ++step)
        block.mma(result[t], w.part[step],
                  right_operand(block, held, t * mma_tile::columns, product_pitch, step));
    }
  }

 private:
  // pairs along the channels: [position, pair]
  template <class Tag, class Block>
  DTM_HD static void fill_for_scores(Block& block, head_positions<bf16> const& of,
                                     std::int64_t first) {
    auto&& held = block.template shared<pair, Others * score_pitch, score_tag<Tag>>();
    constexpr int each = Width / length;
    for (int piece = block.thread(); piece < Others * each; piece += attention_threads) {
      int const position = piece / each, channel = piece % each * length;
      auto const eight = of.template some<length>(block, first + position, channel);
      vector<pair, length / 2> pairs;
      DTM_UNROLL
      for (int n = 0; n < length / 2; ++n) pairs[n] = pair{{eight[2 * n], eight[2 * n + 1]}};
      block.store(&held[position * score_pitch + channel / 2], pairs);
    }
  }
  // pairs along the positions: [channel, pair]
  template <class Tag, class Block>
  DTM_HD static void fill_for_products(Block& block, head_positions<bf16> const& of,
                                       std::int64_t first) {
    auto&& held = block.template shared<pair, Width * product_pitch, product_tag<Tag>>();
    constexpr int pairs = Others / 2;
    for (int piece = block.thread(); piece < pairs * (Width / length); piece += attention_threads) {
      int const q = piece % pairs, channel = piece / pairs * length;
      auto const even = of.template some<length>(block, first + 2 * q, channel);
      auto const odd = of.template some<length>(block, first + 2 * q + 1, channel);
      DTM_UNROLL
      for (int n = 0; n < length; ++n)
        held[(channel + n) * product_pitch + q] = pair{{even[n], odd[n]}};
    }
  }
  template <class Block, class Held>
  DTM_HD static mma_tile::right right_operand(Block& block, Held&& held, int row, int pitch,
                                              int step) {
    mma_tile::right b;
    DTM_UNROLL
    for (int i = 0; i < 4; i += 2) {
      pair const two = held[(row + mma_tile::b_column(block.lane(), i)) * pitch +
                            step * (mma_tile::inner / 2) + mma_tile::b_inner(block.lane(), i) / 2];
      b[i] = two[0];
      b[i + 1] = two[1];
    }
    return b;
  }
};

}  // namespace dtm::kernels
