#pragma once
// Distogram loss (v2): cross entropy of distance bins over the resolved pairs off the diagonal.
//
//   M[i,j] = m_i m_j (1 - delta_ij);  den[b] = 1e-5 + sum_ij M;  logQ = log_softmax(pred)
//   aggregated (one distogram only)   P = sum_k T / max(1, sum_bins sum_k T), one effective conformer
//   not aggregated                    P = T
//   L[b,k,d] = (sum_ij M (-sum_c P[k,c] logQ[d,c])) / den;
//   batch_loss[b] = mean_k min_d L;  loss = mean_b batch_loss
//
// pred [batch, N, N, D, bins], target [batch, N, N, conformers, bins] pair-placed; mask [batch, N]
// in row form. loss is replicated everywhere, batch_loss [batch] is sharded with the data.
// Denominators and means are global. Forward: the mask goes to column form, one all_reduce of 1 +
// K D numbers a sample over the context axes, one number over the data axis. Backward: no message.
// Its cotangents are complete, not partial: the upstream gradient of a loss is a number that every
// rank knows and multiplies its own tile with; as a pending sum it would cost a message to say so.
// Saves pred, target, the mask in both forms, and per sample the denominator and the attaining
// distogram. Arithmetic in accumulate_t. Source: Boltz-2 model/loss/distogramv2.py; v1 is one
// distogram, one conformer, no aggregation.

#include <string>
#include <utility>

#include "dtm/comm/begin.hpp"
#include "dtm/contract/contract.hpp"
#include "dtm/core/errors.hpp"
#include "dtm/core/scratch.hpp"
#include "dtm/core/space.hpp"
#include "dtm/kernels/distogram_loss.hpp"
#include "dtm/ops/elementwise.hpp"

namespace dtm {

namespace module {
struct distogram_loss {
  static constexpr char const* name = "distogram_loss";
};
}  // namespace module

struct loss_terms : dim<"L"> {};

template <class Space, std::int64_t Bins = 64, std::int64_t Distograms = 1>
struct distogram_loss {
  using tag = module::distogram_loss;
  using T = typename Space::element;
  using A = accumulate_t<T>;
  using mesh_type = typename Space::mesh_type;
  using device = typename Space::device;
  using Pred = pair_tensor<Space, c<Distograms>, c<Bins>>;
  using Target = pair_tensor<Space, conformers, c<Bins>>;
  using Mask = single_tensor<Space>;
  using across = transpose<row_axis<Space>, column_axis<Space>>;
  using ColumnMask = after_t<across, Mask>;
  using Loss = tensor<A, uniform_layout_t<mesh_type, shape<>, replicate>, device>;
  using BatchLoss =
      tensor<A, layout<mesh_type, shape<batch>, shard<0>, replicate, replicate>, device>;
  using Terms =
      tensor<A, layout<mesh_type, shape<batch, loss_terms>, shard<0>, partial<sum>, partial<sum>>,
             device>;
  using over_context = all_reduce<row_axis<Space>, column_axis<Space>>;
  /// [batch, conformers]: the distogram of the minimum; the first of a sample's row where
  /// conformers are aggregated.
  using Attaining =
      tensor<std::int64_t,
             layout<mesh_type, shape<batch, conformers>, shard<0>, replicate, replicate>, device>;
  using LocalLoss =
      tensor<A, layout<mesh_type, shape<>, partial<sum>, replicate, replicate>, device>;
  using over_data = all_reduce<data_axis<Space>>;

  struct contract {
    using inputs =
        dtm::inputs<named<arg::pred, Pred>, named<arg::target, Target>, named<arg::mask, Mask>>;
    using outputs = dtm::outputs<named<arg::loss, Loss>, named<arg::batch_loss, BatchLoss>>;
    using cotangents = dtm::outputs<named<arg::d_loss, Loss>>;  // complete; see above
    using forward = collectives<on_tensor<arg::mask, across>, on_tensor<arg::sums, over_context>,
                                on_tensor<arg::loss, over_data>>;
    using backward = collectives<>;
    using saved =
        dtm::saved<named<arg::pred, Pred>, named<arg::target, Target>, named<arg::mask, Mask>,
                   named<arg::column, ColumnMask>, named<arg::denominator, BatchLoss>,
                   named<arg::attaining, Attaining>>;
    using budget = pair_budget<std::int64_t(sizeof(T)) * (Distograms + 1) * Bins>;
    using within = within_budget<tag, saved, budget>;
  };

  bool aggregate_distogram = true;

  struct kept {
    Pred pred;
    Target target;
    Mask mask;
    ColumnMask column_mask;
    BatchLoss denominator;
    Attaining attaining;
    std::int64_t bytes() const {
      return pred.bytes() + target.bytes() + mask.bytes() + column_mask.bytes() +
             denominator.bytes() + attaining.bytes();
    }
  };
  struct result {
    Loss loss;
    BatchLoss batch_loss;
    kept saved;
  };

  /// Throws argument_error where conformers are aggregated for more than one distogram.
  template <class Context>
  result forward(Context& ctx, Pred const& pred, Target const& target, Mask const& mask) const {
    (void)sizeof(typename contract::within);
    if (aggregate_distogram && Distograms != 1)
      throw argument_error(
          "dtm distogram_loss: conformers are aggregated for one distogram only, given are " +
          std::to_string(Distograms) + "; set aggregate_distogram to false");
    std::int64_t const conformer_count = aggregate_distogram ? 1 : target.global_extent(3);
    std::int64_t const term_count = 1 + conformer_count * Distograms;
    auto column_mask = apply<across>(ctx, mask, "mask");
    auto const totals = apply<over_context>(
        ctx, local_terms(ctx, pred, target, mask, column_mask, conformer_count, term_count),
        "sums");

    std::int64_t const all_samples = pred.global_extent(0);
    BatchLoss batch_loss(ctx, global_extents<1>{{all_samples}});
    BatchLoss denominator(ctx, global_extents<1>{{all_samples}});
    Attaining attaining(ctx, global_extents<2>{{all_samples, target.global_extent(3)}});
    local::for_each(ctx, batch_loss.size(),
                    kernels::distogram_finish<A>{totals.data(), Distograms, conformer_count,
                                                 denominator.data(), attaining.data(),
                                                 batch_loss.data()});
    LocalLoss own(ctx, extents{});
    local::for_each(ctx, 1,
                    kernels::sum_in_order<A>{batch_loss.data(), batch_loss.size(),
                                             A(all_samples), own.data()});
    return {apply<over_data>(ctx, own, "loss"),
            std::move(batch_loss),
            {pred.clone(), target.clone(), mask.clone(), std::move(column_mask),
             std::move(denominator), std::move(attaining)}};
  }
  template <class Context, class... Got>
  result forward(Context&, Got const&...) const {
    (void)sizeof(diagnose<tag, typename contract::inputs, Got...>);
    __builtin_unreachable();
  }

  /// dpred for the upstream gradient of the loss; with the second form also of batch_loss.
  template <class Context>
  Pred backward(Context& ctx, kept saved, Loss const& d_loss) const {
    return backward_from(ctx, std::move(saved), d_loss.data(), nullptr);
  }
  template <class Context>
  Pred backward(Context& ctx, kept saved, Loss const& d_loss, BatchLoss const& d_batch_loss) const {
    return backward_from(ctx, std::move(saved), d_loss.data(), d_batch_loss.data());
  }
  template <class Context, class Kept, class Got>
  Pred backward(Context&, Kept&&, Got const&) const {
    diagnose_backward<at<tag, arg::d_loss>, Loss, Got>();
    __builtin_unreachable();
  }

 private:
  // d_batch_loss may be null
  template <class Context>
  Pred backward_from(Context& ctx, kept saved, A const* d_loss, A const* d_batch_loss) const {
    std::int64_t const conformer_count = aggregate_distogram ? 1 : saved.target.global_extent(3);
    std::int64_t const weights = saved.denominator.size() * conformer_count;
    scratch<A> weight(ctx.memory(), weights);
    local::for_each(ctx, weights,
                    kernels::distogram_weights<A>{d_loss, d_batch_loss, saved.denominator.data(),
                                                  saved.pred.global_extent(0), conformer_count,
                                                  weight.data()});
    Pred d_pred(ctx, saved.pred.global());
    auto const tile = saved.pred.tile();
    local::for_each(
        ctx, d_pred.size() / (Distograms * Bins),
        kernels::distogram_loss_backward<T>{
            saved.pred.data(), target_of(saved.target), saved.mask.data(), saved.column_mask.data(),
            tile.extent(1), tile.extent(2), tile.begin[1], tile.begin[2], Distograms,
            conformer_count, weight.data(), saved.attaining.data(), d_pred.data()});
    return d_pred;
  }

  kernels::distogram_target<T> target_of(Target const& target) const {
    return {target.data(), target.global_extent(3), Bins, aggregate_distogram};
  }

  template <class Context>
  Terms local_terms(Context& ctx, Pred const& pred, Target const& target, Mask const& mask,
                    ColumnMask const& column_mask, std::int64_t conformer_count,
                    std::int64_t term_count) const {
    auto const tile = pred.tile();
    std::int64_t const rows = tile.extent(0) * tile.extent(1);
    scratch<A> row_terms(ctx.memory(), rows * term_count);
    local::for_each(ctx, rows,
                    kernels::distogram_row_terms<T>{pred.data(), target_of(target), mask.data(),
                                                    column_mask.data(), tile.extent(1),
                                                    tile.extent(2), tile.begin[1], tile.begin[2],
                                                    Distograms, conformer_count, row_terms.data()});
    Terms terms(ctx, global_extents<2>{{pred.global_extent(0), term_count}});
    local::for_each(
        ctx, terms.size(),
        kernels::sum_middle<A>{row_terms.data(), tile.extent(1), term_count, terms.data()});
    return terms;
  }
};

}  // namespace dtm
