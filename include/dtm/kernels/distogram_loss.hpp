#pragma once
// Kernels of the distogram loss. All arithmetic in A = accumulate_t<T>; sums over pairs go row by
// row, then over rows, so that their order is fixed and their error small. Devices run the first
// two as distogram_blocks.hpp says.

#include <cmath>
#include <cstdint>

#include "dtm/core/config.hpp"
#include "dtm/core/element.hpp"
#include "dtm/kernels/block.hpp"

namespace dtm::kernels {

template <class A, class T>
DTM_HD inline A log_sum_exp(T const* x, std::int64_t count) {
  using std::exp;
  using std::log;
  A largest = A(x[0]);
  for (std::int64_t i = 1; i < count; ++i) largest = A(x[i]) > largest ? A(x[i]) : largest;
  A total = A(0);
  for (std::int64_t i = 0; i < count; ++i) total += exp(A(x[i]) - largest);
  return largest + log(total);
}

/// The effective target of a pair: the k-th conformer, or all of them summed and divided by max(1,
/// sum).
template <class T>
struct distogram_target {
  T const* target;  // [pair, conformers, bins]
  std::int64_t conformers, bins;
  bool aggregate;

  DTM_HD accumulate_t<T> weight(std::int64_t pair) const {
    using A = accumulate_t<T>;
    if (!aggregate) return A(1);
    A total = A(0);
    for (std::int64_t i = 0; i < conformers * bins; ++i)
      total += A(target[pair * conformers * bins + i]);
    return A(1) / (total > A(1) ? total : A(1));
  }
  DTM_HD accumulate_t<T> at(std::int64_t pair, std::int64_t k, std::int64_t bin,
                            accumulate_t<T> weight) const {
    using A = accumulate_t<T>;
    T const* const first = target + pair * conformers * bins + bin;
    if (!aggregate) return A(first[k * bins]);
    A total = A(0);
    DTM_KEEP_LOOP
    for (std::int64_t conformer = 0; conformer < conformers; ++conformer)
      total += A(first[conformer * bins]);
    return total * weight;
  }
};

/// One row of pairs (b, i), over an index: reads `columns` predictions and targets once, 10 flops
/// and an exponential a bin; memory. terms[0] = sum_j M, terms[1 + k D + d] = sum_j M * cross entropy of
/// conformer k and distogram d.
template <class T>
struct distogram_row_terms {
  T const* pred;  // [pair, distograms, bins]
  distogram_target<T> target;
  T const* row_mask;     // [batch, rows]
  T const* column_mask;  // [batch, columns]
  std::int64_t rows, columns, first_row, first_column, distograms, effective_conformers;
  accumulate_t<T>* terms;  // [batch * rows, 1 + effective_conformers * distograms]

  DTM_HD void operator()(std::int64_t row) const {
    using A = accumulate_t<T>;
    std::int64_t const b = row / rows, i = row % rows, bins = target.bins;
    std::int64_t const count = 1 + effective_conformers * distograms;
    A* const out = terms + row * count;
    for (std::int64_t term = 0; term < count; ++term) out[term] = A(0);
    for (std::int64_t j = 0; j < columns; ++j) {
      if (first_row + i == first_column + j) continue;
      A const mask = A(row_mask[row]) * A(column_mask[b * columns + j]);
      out[0] += mask;
      if (mask == A(0)) continue;
      std::int64_t const pair = row * columns + j;
      A const weight = target.weight(pair);
      for (std::int64_t d = 0; d < distograms; ++d) {
        T const* const logits = pred + (pair * distograms + d) * bins;
        A const lse = log_sum_exp<A>(logits, bins);
        for (std::int64_t k = 0; k < effective_conformers; ++k) {
          A entropy = A(0);
          for (std::int64_t bin = 0; bin < bins; ++bin)
            entropy -= target.at(pair, k, bin, weight) * (A(logits[bin]) - lse);
          out[1 + k * distograms + d] += mask * entropy;
        }
      }
    }
  }
};

/// dpred of one pair, over an index: reads prediction and target, writes 1; 12 flops and two
/// exponentials a bin; memory. dpred = M sum_k w[b, k, d] (softmax(pred) sum_bins P - P), w given per (b, k) with
/// the attaining d.
template <class T>
struct distogram_loss_backward {
  T const* pred;
  distogram_target<T> target;
  T const* row_mask;
  T const* column_mask;
  std::int64_t rows, columns, first_row, first_column, distograms, effective_conformers;
  accumulate_t<T> const* weight;  // [batch, effective_conformers]
  std::int64_t const* attaining;  // [batch, effective_conformers]
  T* dpred;

  DTM_HD void operator()(std::int64_t pair) const {
    using A = accumulate_t<T>;
    using std::exp;
    std::int64_t const j = pair % columns, row = pair / columns, b = row / rows, i = row % rows,
                       bins = target.bins;
    bool const diagonal = first_row + i == first_column + j;
    A const mask = diagonal ? A(0) : A(row_mask[row]) * A(column_mask[b * columns + j]);
    A const scale = target.weight(pair);
    for (std::int64_t d = 0; d < distograms; ++d) {
      T const* const logits = pred + (pair * distograms + d) * bins;
      T* const out = dpred + (pair * distograms + d) * bins;
      if (mask == A(0)) {
        for (std::int64_t bin = 0; bin < bins; ++bin) out[bin] = T(0.0f);
        continue;
      }
      A const lse = log_sum_exp<A>(logits, bins);
      // the weighted target and its sum over the conformers whose minimum this distogram attains
      A all = A(0);
      for (std::int64_t k = 0; k < effective_conformers; ++k) {
        if (attaining[b * effective_conformers + k] != d) continue;
        A total = A(0);
        for (std::int64_t bin = 0; bin < bins; ++bin) total += target.at(pair, k, bin, scale);
        all += weight[b * effective_conformers + k] * total;
      }
      for (std::int64_t bin = 0; bin < bins; ++bin) {
        A pulled = A(0);
        for (std::int64_t k = 0; k < effective_conformers; ++k)
          if (attaining[b * effective_conformers + k] == d)
            pulled += weight[b * effective_conformers + k] * target.at(pair, k, bin, scale);
        out[bin] = T(mask * (all * exp(A(logits[bin]) - lse) - pulled));
      }
    }
  }
};

/// What a sample's totals [1 + K D] say, one index a sample: the denominator, for every conformer
/// the first distogram of least loss, and the mean over the conformers. A few numbers.
template <class A>
struct distogram_finish {
  static constexpr int resident = 2;
  A const* totals;  // [batch, 1 + conformers * distograms]
  std::int64_t distograms, effective_conformers;
  A* denominator;           // [batch]
  std::int64_t* attaining;  // [batch, conformers]
  A* batch_loss;            // [batch]
  DTM_HD void operator()(std::int64_t b) const {
    A const* const terms = totals + b * (1 + effective_conformers * distograms);
    A const pairs = A(1e-5) + terms[0];
    A mean = A(0);
    for (std::int64_t k = 0; k < effective_conformers; ++k) {
      A const* const of_conformer = terms + 1 + k * distograms;
      std::int64_t best = 0;
      for (std::int64_t d = 1; d < distograms; ++d)
        if (of_conformer[d] < of_conformer[best]) best = d;
      attaining[b * effective_conformers + k] = best;
      mean += of_conformer[best] / pairs / A(effective_conformers);
    }
    denominator[b] = pairs;
    batch_loss[b] = mean;
  }
};

/// weight[b, k] of distogram_loss_backward from the upstream gradients of the loss and, where there
/// is one, of the samples' losses; one index a (b, k). A few numbers.
template <class A>
struct distogram_weights {
  static constexpr int resident = 2;
  A const* d_loss;        // [1]
  A const* d_batch_loss;  // [batch], or null
  A const* denominator;   // [batch]
  std::int64_t all_samples, effective_conformers;
  A* weight;  // [batch, conformers]
  DTM_HD void operator()(std::int64_t i) const {
    std::int64_t const b = i / effective_conformers;
    A const of_sample = d_batch_loss != nullptr ? d_batch_loss[b] : A(0);
    weight[i] =
        (of_sample + *d_loss / A(all_samples)) / (A(effective_conformers) * denominator[b]);
  }
};

}  // namespace dtm::kernels

#include "dtm/kernels/distogram_blocks.hpp"  // how devices run these
