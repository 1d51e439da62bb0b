#pragma once
// Batched matrix products of bf16 on the matrix units, sums in float. A block of four warps forms a
// tile of 64 x 64 in steps of 32 along k, a warp a quarter of it: 2 x 4 tiles of mma. Shared memory
// holds pairs of neighbours along k, which is what a lane of mma takes, whatever way the operand is
// stored; the next step's elements are on their way while this one's are multiplied.

#include <cstdint>

#include "dtm/kernels/product.hpp"

namespace dtm::kernels {

/// A 64 x 32 tile (outer, k) of an operand on its way to shared memory.
struct mma_operand {
  static constexpr int side = int(product_shape::side), inner = 32, length = 8, threads = 128;
  static constexpr int pairs = inner / 2;
  static constexpr int pitch = pairs + 4;  // eight rows of four pairs meet every bank once
  static constexpr int elements = side * pitch;
  using pair = vector<bf16, 2>;

  bf16 const* matrix;  // [outer, k] or [k, outer]
  std::int64_t outer_count, k_count;
  bool k_is_major;  // [k, outer]
  bool aligned;     // rows may be read eight elements at a time
  vector<bf16, length> some[2];

  /// Eight neighbours of a row; 0 beyond the matrix.
  template <class Block>
  DTM_HD vector<bf16, length> eight(Block& block, std::int64_t row, std::int64_t rows,
                                    std::int64_t column, std::int64_t columns,
                                    std::int64_t pitch_of_rows) const {
    vector<bf16, length> result;
    bf16 const* const first = matrix + row * pitch_of_rows + column;
    if (aligned && row < rows && column + length <= columns)
      return block.template load<length>(first);
    for (int n = 0; n < length; ++n)
      result[n] = row < rows && column + n < columns ? first[n] : bf16{};
    return result;
  }
  template <class Block>
  DTM_HD void fetch(Block& block, std::int64_t outer, std::int64_t k, std::int64_t k_end) {
    DTM_UNROLL
    for (int part = 0; part < 2; ++part) {
      if (k_is_major) {  // rows 2 q and 2 q + 1, eight columns
        std::int64_t const row = k + block.thread() % pairs * 2 + part;
        some[part] = eight(block, row, k_end, outer + block.thread() / pairs * length, outer_count,
                           outer_count);
      } else {
        int const each = inner / length, piece = part * threads + block.thread();
        some[part] = eight(block, outer + piece / each, outer_count, k + piece % each * length,
                           k_end, k_count);
      }
    }
  }
  template <class Block, class Held>
  DTM_HD void put(Block& block, Held&& held) const {
    if (k_is_major) {
      int const q = block.thread() % pairs, outer = block.thread() / pairs * length;
      DTM_UNROLL
      for (int n = 0; n < length; ++n)
        held[(outer + n) * pitch + q] = pair{{some[0][n], some[1][n]}};
    } else {
      DTM_UNROLL
      for (int part = 0; part < 2; ++part) {
        int const each = inner / length, piece = part * threads + block.thread();
        DTM_UNROLL
        for (int n = 0; n < length; n += 2)
          held[piece / each * pitch + piece % each * (length / 2) + n / 2] =
              pair{{some[part][n], some[part][n + 1]}};
      }
    }
  }
};

template <class Result>
struct product_mma {
  static constexpr int threads = mma_operand::threads;
  static constexpr int pitch = mma_operand::pitch;
  static constexpr int quarter = int(product_shape::side) / 2;
  static constexpr int down = quarter / mma_tile::rows, across = quarter / mma_tile::columns;
  using pair = mma_operand::pair;
  struct left_tag {};
  struct right_tag {};
  product_shape shape;
  bf16 const* left;
  bf16 const* right;
  Result* result;
  bool left_aligned, right_aligned;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& of_left = block.template shared<pair, mma_operand::elements, left_tag>();
    auto&& of_right = block.template shared<pair, mma_operand::elements, right_tag>();
    product_place const at(shape, block.index());
    mma_operand l{left + at.batch * shape.m * shape.k,
                  shape.m,
                  shape.k,
                  shape.left_transposed,
                  left_aligned,
                  {}};
    mma_operand r{right + at.batch * shape.k * shape.n,
                  shape.n,
                  shape.k,
                  !shape.right_transposed,
                  right_aligned,
                  {}};
    int const row = block.warp() / 2 * quarter, column = block.warp() % 2 * quarter;
    mma_tile::sum total[down][across];
    DTM_UNROLL
    for (int i = 0; i < down; ++i) {
      DTM_UNROLL
      for (int j = 0; j < across; ++j) total[i][j] = mma_tile::sum{{0, 0, 0, 0}};
    }
    fetch(block, l, r, at, at.k_begin);
    for (std::int64_t k = at.k_begin; k < at.k_end; k += mma_operand::inner) {
      l.put(block, of_left);
      r.put(block, of_right);
      block.sync();
      if (k + mma_operand::inner < at.k_end) fetch(block, l, r, at, k + mma_operand::inner);
      DTM_UNROLL
      for (int step = 0; step < mma_operand::pairs; step += mma_tile::inner / 2)
        multiply(block, of_left, of_right, row, column, step, total);
      block.sync();
    }
    write(block, at, row, column, total);
  }

 private:
  template <class Block>
  DTM_HD static void fetch(Block& block, mma_operand& l, mma_operand& r, product_place const& at,
                           std::int64_t k) {
    l.fetch(block, at.row, k, at.k_end);
    r.fetch(block, at.column, k, at.k_end);
  }

  // total += the 16 indices of k that begin at pair `step`
  template <class Block, class Left, class Right>
  DTM_HD static void multiply(Block& block, Left&& of_left, Right&& of_right, int row, int column,
                              int step, mma_tile::sum (&total)[down][across]) {
    int const lane = block.lane();
    mma_tile::left a[down];
    mma_tile::right b[across];
    DTM_UNROLL
    for (int t = 0; t < down; ++t) {
      DTM_UNROLL
      for (int i = 0; i < 8; i += 2) {
        pair const two = of_left[(row + t * mma_tile::rows + mma_tile::a_row(lane, i)) * pitch +
                                 step + mma_tile::a_inner(lane, i) / 2];
        a[t][i] = two[0];
        a[t][i + 1] = two[1];
      }
    }
    DTM_UNROLL
    for (int t = 0; t < across; ++t) {
      DTM_UNROLL
      for (int i = 0; i < 4; i += 2) {
        pair const two =
            of_right[(column + t * mma_tile::columns + mma_tile::b_column(lane, i)) * pitch + step +
                     mma_tile::b_inner(lane, i) / 2];
        b[t][i] = two[0];
        b[t][i + 1] = two[1];
      }
    }
    DTM_UNROLL
    for (int i = 0; i < down; ++i) {
      DTM_UNROLL
      for (int j = 0; j < across; ++j) block.mma(total[i][j], a[i], b[j]);
    }
  }

  template <class Block>
  DTM_HD void write(Block& block, product_place const& at, int row, int column,
                    mma_tile::sum const (&total)[down][across]) const {
    Result* const out = result + (at.chunk * shape.batch + at.batch) * shape.m * shape.n;
    DTM_UNROLL
    for (int i = 0; i < down; ++i) {
      DTM_UNROLL
      for (int j = 0; j < across; ++j) {
        DTM_UNROLL
        for (int e = 0; e < 4; ++e) {
          std::int64_t const of_row =
              at.row + row + i * mma_tile::rows + mma_tile::d_row(block.lane(), e);
          std::int64_t const of_column =
              at.column + column + j * mma_tile::columns + mma_tile::d_column(block.lane(), e);
          if (of_row < shape.m && of_column < shape.n)
            put_result(out + of_row * shape.n + of_column, total[i][j].element[e],
                       shape.accumulate);
        }
      }
    }
  }
};

}  // namespace dtm::kernels
