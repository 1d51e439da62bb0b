#pragma once
// Distogram loss: cross entropy of distance bins, averaged over the resolved pairs off the
// diagonal. The serial function is Boltz-2's distogram_loss; v1 (Boltz-1) is K = D = 1 without
// aggregation.
//
//   pred (B, N, N, D, bins) logits, target (B, N, N, K, bins), mask (B, N)
//   M[i,j] = m_i m_j (1 - delta_ij) ;  den[b] = 1e-5 + sum_ij M ;  logQ = log_softmax(pred)
//   aggregated (needs D = 1):  P = sum_k T / max(1, sum_bins sum_k T), one effective conformer
//   not aggregated:            P = T
//   L[b,k,d] = sum_ij M (- sum_c P[k,c] logQ[d,c]) / den
//   batch_loss[b] = mean_k min_d L[b,k,d] ;  loss = mean_b batch_loss
//
//   w[b,k,d] = (h[b] + G / B) / (K den[b]) where d is the first that attains the minimum, else 0
//   dpred[i,j,d,c] = M[i,j] sum_k w[k,d] (softmax(pred)[d,c] sum_c' P[k,c'] - P[k,c])
//   for upstream G of loss and h of batch_loss

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "dtm/serial/array.hpp"

namespace dtm::serial {

template <class T>
struct distogram_loss {
  using value_type = T;

  bool aggregate_distogram = true;

  struct saved {
    array<T> pred;
    array<T> target;                // P, (B, N, N, K, bins) with the effective K
    array<T> pair_mask;             // M, (B, N, N)
    array<T> denominator;           // (B)
    array<std::int64_t> attaining;  // (B, K): the d of the minimum
  };
  struct result {
    T loss;
    array<T> batch_loss;  // (B)
    saved kept;
  };

  result forward(array<T> const& pred, array<T> const& target, array<T> const& mask) const {
    check(pred, target, mask);
    std::int64_t const batch = pred.extent(0);
    std::int64_t const distograms = pred.extent(3);
    array<T> p = aggregate_distogram ? aggregated(target) : target;
    std::int64_t const conformers = p.extent(3);
    array<T> pair_mask = off_diagonal(mask);
    array<T> denominator({batch}, T(1e-5));
    for (std::int64_t b = 0; b < batch; ++b) denominator(b) += sum_of_pairs(pair_mask, b);

    array<T> const losses = cross_entropies(pred, p, pair_mask, denominator);
    array<std::int64_t> attaining({batch, conformers});
    array<T> batch_loss({batch});
    T loss = T(0);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t k = 0; k < conformers; ++k) {
        T const* row = losses.row(b, k);
        attaining(b, k) = std::min_element(row, row + distograms) - row;
        batch_loss(b) += row[attaining(b, k)] / static_cast<T>(conformers);
      }
      loss += batch_loss(b) / static_cast<T>(batch);
    }
    return {
        loss,
        std::move(batch_loss),
        {pred, std::move(p), std::move(pair_mask), std::move(denominator), std::move(attaining)}};
  }

  /// dpred for the upstream gradient of loss.
  array<T> backward(saved const& kept, T d_loss) const {
    return backward(kept, d_loss, array<T>({kept.pred.extent(0)}));
  }

  /// dpred for the upstream gradients of loss and of batch_loss, (B).
  array<T> backward(saved const& kept, T d_loss, array<T> const& d_batch_loss) const {
    std::int64_t const batch = kept.pred.extent(0);
    std::int64_t const tokens = kept.pred.extent(1);
    std::int64_t const bins = kept.pred.extent(4);
    std::int64_t const conformers = kept.target.extent(3);
    expect_extents(d_batch_loss, {batch}, "distogram_loss: d_batch_loss");
    array<T> dpred = zeros_like(kept.pred);
    for (std::int64_t b = 0; b < batch; ++b) {
      T const weight = (d_batch_loss(b) + d_loss / static_cast<T>(batch)) /
                       (static_cast<T>(conformers) * kept.denominator(b));
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          for (std::int64_t k = 0; k < conformers; ++k) {
            std::int64_t const d = kept.attaining(b, k);
            T const* logits = kept.pred.row(b, i, j, d);
            T const* p = kept.target.row(b, i, j, k);
            T const lse = log_sum_exp(logits, bins);
            T sum_p = T(0);
            for (std::int64_t c = 0; c < bins; ++c) sum_p += p[c];
            for (std::int64_t c = 0; c < bins; ++c)
              dpred(b, i, j, d, c) +=
                  kept.pair_mask(b, i, j) * weight * (sum_p * std::exp(logits[c] - lse) - p[c]);
          }
    }
    return dpred;
  }

 private:
  void check(array<T> const& pred, array<T> const& target, array<T> const& mask) const {
    expect_rank(pred, 5, "distogram_loss: pred");
    expect_rank(target, 5, "distogram_loss: target");
    std::int64_t const batch = pred.extent(0);
    std::int64_t const tokens = pred.extent(1);
    expect_extents(pred, {batch, tokens, tokens, pred.extent(3), pred.extent(4)},
                   "distogram_loss: pred");
    expect_extents(target, {batch, tokens, tokens, target.extent(3), pred.extent(4)},
                   "distogram_loss: target");
    expect_extents(mask, {batch, tokens}, "distogram_loss: mask");
    if (aggregate_distogram && pred.extent(3) != 1)
      throw argument_error(
          "distogram_loss: conformers are aggregated for one distogram only, given are " +
          std::to_string(pred.extent(3)) + "; set aggregate_distogram to false");
  }

  static T log_sum_exp(T const* x, std::int64_t count) {
    T const largest = *std::max_element(x, x + count);
    T sum = T(0);
    for (std::int64_t c = 0; c < count; ++c) sum += std::exp(x[c] - largest);
    return largest + std::log(sum);
  }

  static array<T> off_diagonal(array<T> const& mask) {
    std::int64_t const tokens = mask.extent(1);
    array<T> pair({mask.extent(0), tokens, tokens});
    for (std::int64_t b = 0; b < mask.extent(0); ++b)
      for (std::int64_t i = 0; i < tokens; ++i)
        for (std::int64_t j = 0; j < tokens; ++j)
          pair(b, i, j) = i == j ? T(0) : mask(b, i) * mask(b, j);
    return pair;
  }

  static T sum_of_pairs(array<T> const& pair, std::int64_t b) {
    T sum = T(0);
    for (std::int64_t i = 0; i < pair.extent(1); ++i)
      for (std::int64_t j = 0; j < pair.extent(2); ++j) sum += pair(b, i, j);
    return sum;
  }

  static array<T> aggregated(array<T> const& target) {
    extent_list extents = target.extents;
    extents[3] = 1;
    array<T> p(extents);
    for (std::int64_t b = 0; b < extents[0]; ++b)
      for (std::int64_t i = 0; i < extents[1]; ++i)
        for (std::int64_t j = 0; j < extents[2]; ++j) {
          T* sum = p.row(b, i, j);
          T total = T(0);
          for (std::int64_t k = 0; k < target.extent(3); ++k)
            for (std::int64_t c = 0; c < extents[4]; ++c) {
              sum[c] += target(b, i, j, k, c);
              total += target(b, i, j, k, c);
            }
          for (std::int64_t c = 0; c < extents[4]; ++c) sum[c] /= std::max(T(1), total);
        }
    return p;
  }

  /// L (B, K, D)
  static array<T> cross_entropies(array<T> const& pred, array<T> const& p,
                                  array<T> const& pair_mask, array<T> const& denominator) {
    std::int64_t const tokens = pred.extent(1);
    array<T> losses({pred.extent(0), p.extent(3), pred.extent(3)});
    for (std::int64_t b = 0; b < pred.extent(0); ++b)
      for (std::int64_t d = 0; d < pred.extent(3); ++d)
        for (std::int64_t i = 0; i < tokens; ++i)
          for (std::int64_t j = 0; j < tokens; ++j) {
            T const* logits = pred.row(b, i, j, d);
            T const lse = log_sum_exp(logits, pred.extent(4));
            for (std::int64_t k = 0; k < p.extent(3); ++k) {
              T entropy = T(0);
              for (std::int64_t c = 0; c < pred.extent(4); ++c)
                entropy -= p(b, i, j, k, c) * (logits[c] - lse);
              losses(b, k, d) += pair_mask(b, i, j) * entropy / denominator(b);
            }
          }
    return losses;
  }
};

}  // namespace dtm::serial
