#pragma once
// The kernels of the distogram loss over blocks: a warp a pair, its lanes over the bins, however
// many there are. Predictions and targets are read once from memory (bins beyond 64 once more from
// cache). A block sums a row of pairs: each warp every eighth pair, then the warps in their order
// (law L13).
//
// With x the logits, m their maximum and s = sum exp(x - m), the cross entropy of a target P is
// log(s) sum P - sum P (x - m): one pass over the target.

#include <cstdint>

#include "dtm/kernels/block.hpp"
#include "dtm/kernels/device_form.hpp"
#include "dtm/kernels/distogram_loss.hpp"

namespace dtm::kernels {

/// The logits of a pair, the first 64 in the registers of a warp.
template <class T>
struct lane_bins {
  using A = accumulate_t<T>;
  static constexpr int held = 2;
  T const* logits;
  std::int64_t bins;
  int lane;
  A own[held];
  A largest, total;  // the maximum, and sum exp(x - maximum)

  template <class Block>
  DTM_HD lane_bins(Block& block, T const* first, std::int64_t count)
      : logits(first), bins(count), lane(block.lane()) {
    using std::exp;
    DTM_UNROLL
    for (int v = 0; v < held; ++v)
      own[v] = v * warp_size + lane < bins ? A(logits[v * warp_size + lane]) : A(0);
    A highest = A(-__builtin_huge_val());
    each([&](std::int64_t, A x) { highest = x > highest ? x : highest; });
    largest = warp_max(block, highest);
    A mine = A(0);
    each([&](std::int64_t, A x) { mine += exp(x - largest); });
    total = warp_sum(block, mine);
  }
  /// visit(bin, logit) for this lane's bins.
  template <class Visit>
  DTM_HD void each(Visit visit) const {
    DTM_UNROLL
    for (int v = 0; v < held; ++v)
      if (v * warp_size + lane < bins) visit(std::int64_t(v * warp_size + lane), own[v]);
    DTM_KEEP_LOOP
    for (std::int64_t bin = held * warp_size + lane; bin < bins; bin += warp_size)
      visit(bin, A(logits[bin]));
  }
};

/// The target of a bin before aggregated conformers are scaled.
template <class T>
DTM_HD accumulate_t<T> raw_target(distogram_target<T> const& target, std::int64_t pair,
                                  std::int64_t k, std::int64_t bin) {
  return target.at(pair, k, bin, accumulate_t<T>(1));
}
template <class A>
DTM_HD A aggregate_scale(bool aggregate, A sum) {
  return aggregate ? A(1) / (sum > A(1) ? sum : A(1)) : A(1);
}

/// distogram_row_terms, a block a row of pairs.
template <class T>
struct distogram_row_blocks {
  static constexpr int threads = 256, warps = threads / warp_size;
  static constexpr int resident = sizeof(accumulate_t<T>) == 8 ? 2 : 3;
  static constexpr int most_terms = 64;  // at once; more are another pass over the row
  using A = accumulate_t<T>;
  distogram_row_terms<T> of;
  std::int64_t all_rows;

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    auto&& sums = block.template shared<A, warps * most_terms, distogram_row_blocks>();
    std::int64_t const count = 1 + of.effective_conformers * of.distograms;
    int const mine = block.warp() * most_terms;
    for (std::int64_t row = block.index(); row < all_rows; row += block.grid()) {
      for (std::int64_t first = 0; first < count; first += most_terms) {
        for (int e = block.lane(); e < most_terms; e += warp_size) sums[mine + e] = A(0);
        block.sync_warp();
        for (std::int64_t j = block.warp(); j < of.columns; j += warps)
          add_pair(block, sums, row, j, first);
        block.sync();
        std::int64_t const left = count - first;
        for (std::int64_t e = block.thread(); e < (left < most_terms ? left : most_terms);
             e += block.size()) {
          A total = A(0);
          for (int warp = 0; warp < warps; ++warp) total += A(sums[warp * most_terms + e]);
          of.terms[row * count + first + e] = total;
        }
        block.sync();
      }
    }
  }

 private:
  // Adds the terms [first, first + most_terms) of a pair to the warp's sums; lane 0 has them.
  template <class Block, class Sums>
  DTM_HD void add_pair(Block& block, Sums&& sums, std::int64_t row, std::int64_t j,
                       std::int64_t first) const {
    using std::log;
    std::int64_t const b = row / of.rows, i = row % of.rows, pair = row * of.columns + j;
    if (of.first_row + i == of.first_column + j) return;
    A const mask = A(of.row_mask[row]) * A(of.column_mask[b * of.columns + j]);
    auto const add = [&](std::int64_t term, A value) {
      if (block.lane() != 0) return;
      std::int64_t const at = block.warp() * most_terms + term - first;
      A const before = sums[at];
      sums[at] = before + value;
    };
    if (first == 0) add(0, mask);
    if (mask == A(0)) return;
    DTM_KEEP_LOOP
    for (std::int64_t d = 0; d < of.distograms; ++d) {
      lane_bins<T> const x(block, of.pred + (pair * of.distograms + d) * of.target.bins,
                           of.target.bins);
      A const log_total = log(x.total);
      for (std::int64_t k = 0; k < of.effective_conformers; ++k) {
        std::int64_t const term = 1 + k * of.distograms + d;
        if (term < first || term >= first + most_terms) continue;
        A sum = A(0), pulled = A(0);
        x.each([&](std::int64_t bin, A logit) {
          A const p = raw_target(of.target, pair, k, bin);
          sum += p;
          pulled += p * (logit - x.largest);
        });
        sum = warp_sum(block, sum);
        pulled = warp_sum(block, pulled);
        A const entropy = (log_total * sum - pulled) * aggregate_scale(of.target.aggregate, sum);
        add(term, mask * entropy);
      }
    }
  }
};

/// distogram_loss_backward, a block a part of a row of pairs, a warp a pair.
template <class T>
struct distogram_backward_blocks {
  static constexpr int threads = 256, warps = threads / warp_size;
  static constexpr int resident = sizeof(accumulate_t<T>) == 8 ? 2 : 3;
  static constexpr std::int64_t columns_each = 8 * warps;
  using A = accumulate_t<T>;
  distogram_loss_backward<T> of;
  std::int64_t parts;  // all rows' together

  template <class Block>
  DTM_HD void operator()(Block& block) const {
    std::int64_t const in_row = (of.columns + columns_each - 1) / columns_each;
    for (std::int64_t part = block.index(); part < parts; part += block.grid()) {
      std::int64_t const row = part / in_row, b = row / of.rows, i = row % of.rows;
      std::int64_t const begin = part % in_row * columns_each;
      std::int64_t const end =
          begin + columns_each < of.columns ? begin + columns_each : of.columns;
      A const of_row = A(of.row_mask[row]);
      for (std::int64_t j = begin + block.warp(); j < end; j += warps) {
        bool const diagonal = of.first_row + i == of.first_column + j;
        do_pair(block, row * of.columns + j, b,
                diagonal ? A(0) : of_row * A(of.column_mask[b * of.columns + j]));
      }
    }
  }

 private:
  template <class Block>
  DTM_HD void do_pair(Block& block, std::int64_t pair, std::int64_t b, A mask) const {
    std::int64_t const bins = of.target.bins;
    DTM_KEEP_LOOP
    for (std::int64_t d = 0; d < of.distograms; ++d) {
      T* const out = of.dpred + (pair * of.distograms + d) * bins;
      if (mask == A(0)) {
        for (std::int64_t bin = block.lane(); bin < bins; bin += warp_size) out[bin] = T(0.0f);
      } else {
        do_distogram(block, pair, b, d, mask, out);
      }
    }
  }

  // sum over the conformers whose minimum this distogram attains, weighted; unscaled
  DTM_HD A pulled_at(std::int64_t pair, std::int64_t b, std::int64_t d, std::int64_t bin) const {
    A pulled = A(0);
    DTM_KEEP_LOOP
    for (std::int64_t k = 0; k < of.effective_conformers; ++k) {
      std::int64_t const at = b * of.effective_conformers + k;
      if (of.attaining[at] == d) pulled += of.weight[at] * raw_target(of.target, pair, k, bin);
    }
    return pulled;
  }

  template <class Block>
  DTM_HD void do_distogram(Block& block, std::int64_t pair, std::int64_t b, std::int64_t d, A mask,
                           T* out) const {
    using std::exp;
    constexpr int held = lane_bins<T>::held;
    lane_bins<T> const x(block, of.pred + (pair * of.distograms + d) * of.target.bins,
                         of.target.bins);
    A pulled[held];
    A all = A(0), raw = A(0);
    DTM_UNROLL
    for (int v = 0; v < held; ++v) pulled[v] = A(0);
    DTM_UNROLL
    for (int v = 0; v < held; ++v) {
      std::int64_t const bin = v * warp_size + x.lane;
      if (bin >= x.bins) continue;
      pulled[v] = pulled_at(pair, b, d, bin);
      all += pulled[v];
      if (of.target.aggregate) raw += raw_target(of.target, pair, 0, bin);
    }
    DTM_KEEP_LOOP
    for (std::int64_t bin = held * warp_size + x.lane; bin < x.bins; bin += warp_size) {
      all += pulled_at(pair, b, d, bin);
      if (of.target.aggregate) raw += raw_target(of.target, pair, 0, bin);
    }
    A const scale = aggregate_scale(of.target.aggregate, warp_sum(block, raw));
    all = warp_sum(block, all) * scale;
    A const share = all / x.total;
    DTM_UNROLL
    for (int v = 0; v < held; ++v) {
      std::int64_t const bin = v * warp_size + x.lane;
      if (bin < x.bins)
        out[bin] = T(mask * (share * exp(x.own[v] - x.largest) - pulled[v] * scale));
    }
    DTM_KEEP_LOOP
    for (std::int64_t bin = held * warp_size + x.lane; bin < x.bins; bin += warp_size)
      out[bin] = T(
          mask * (share * exp(A(x.logits[bin]) - x.largest) - pulled_at(pair, b, d, bin) * scale));
  }
};

template <class T>
struct device_form<distogram_row_terms<T>> {
  static launch_form<distogram_row_blocks<T>> of(distogram_row_terms<T> const& kernel,
                                                 std::int64_t rows) {
    return {blocks_for(rows, 1), {kernel, rows}};
  }
};
template <class T>
struct device_form<distogram_loss_backward<T>> {
  static launch_form<distogram_backward_blocks<T>> of(distogram_loss_backward<T> const& kernel,
                                                      std::int64_t pairs) {
    using form = distogram_backward_blocks<T>;
    if (pairs == 0) return {0, {}};
    std::int64_t const parts =
        pairs / kernel.columns * ceil_divide(kernel.columns, form::columns_each);
    return {blocks_for(parts, 1), {kernel, parts}};
  }
};

}  // namespace dtm::kernels
