#pragma once
// The sharded program: every rank fills its own tile of the input, and the library does the rest.
// Parameters are replicated and start equal everywhere, because an initial value is a function of
// (seed, name, index). The same source serves every backend: what the host computes is copied to the
// device and back.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dtm/backend/context.hpp>
#include <dtm/contract/describe.hpp>
#include <dtm/core/host_copy.hpp>
#include <dtm/models/distogram_model.hpp>
#include <dtm/train/adam.hpp>

#include "contact_map.hpp"
#include "training.hpp"
#include "volumes.hpp"

namespace example {

using grid = dtm::mesh<dtm::dp, dtm::cp0, dtm::cp1>;

template <class Device, class T, std::int64_t Channels, class Schedule>
class sharded_training {
 public:
  using space = dtm::space<T, grid, Device>;
  using model_type = dtm::distogram_model<space, Channels, Channels, Schedule>;
  using batch_type = typename model_type::batch_type;
  using context = dtm::context<Device, grid>;
  using block = typename model_type::block_type;

  explicit sharded_training(task const& work)
      : work_(work),
        ctx_(work.world, {1, work.choice.cp0, work.choice.cp1}, work.settings.seed),
        model_(ctx_, int(work.settings.blocks)),
        batch_(make_batch()),
        adam_(ctx_, initialised(), adam_options_of(work.settings)) {}

  /// Loss before the step, then one step of Adam.
  double step() {
    ctx_.ledger().clear();
    ctx_.memory().restart_peak();
    std::int64_t const before = ctx_.memory().current_bytes;
    auto result = model_.forward(ctx_, batch_);
    result.logits.release();
    kept_bytes_ =
        ctx_.memory().current_bytes - before - result.loss.bytes() - result.batch_loss.bytes();
    auto gradients = dtm::zero_gradients(ctx_, model_);
    typename model_type::loss_type::Loss d_loss(ctx_, dtm::extents{});
    dtm::accumulate_t<T> const one = 1;
    d_loss.copy_from_host(&one);
    model_.backward(ctx_, std::move(result.saved), batch_, d_loss, gradients);
    auto complete = dtm::synchronise(ctx_, std::move(gradients));
    dtm::clip_gradient_norm(ctx_, complete, work_.settings.gradient_norm);
    adam_.step(ctx_, model_, complete);
    peak_bytes_ = ctx_.memory().peak_bytes;
    return double(dtm::item(result.loss));
  }

  double loss() { return double(dtm::item(model_.forward(ctx_, batch_).loss)); }

  /// (N, N) probability of a contact, on every rank.
  std::vector<double> contacts() {
    auto const logits = model_.forward(ctx_, batch_).logits;
    auto const values = dtm::on_host(logits);
    dtm::tensor<double, typename dtm::pair_tensor<space>::layout_type, Device> own(ctx_, sizes());
    std::vector<double> probabilities(std::size_t(own.size()));
    for (std::size_t pair = 0; pair < probabilities.size(); ++pair)
      probabilities[pair] = contact_probability(values.data() + pair * distance_bins);
    own.copy_from_host(probabilities.data());
    auto const rows = dtm::apply<dtm::all_gather<dtm::cp1>>(ctx_, own, "contacts");
    auto const all = dtm::apply<dtm::all_gather<dtm::cp0>>(ctx_, rows, "contacts");
    auto const everywhere = dtm::on_host(all);
    return {everywhere.begin(), everywhere.end()};
  }

  std::map<std::string, std::vector<double>> parameters() {
    std::map<std::string, std::vector<double>> result;
    for (auto const& view : dtm::named_parameters(model_))
      for (T const value : view.values()) result[view.name].push_back(double(value));
    return result;
  }

  /// What every rank used in the last step; collective.
  std::vector<rank_usage> usage() {
    std::int64_t const mine[] = {kept_bytes_,    kept_formula(), ctx_.ledger().sent_bytes(),
                                 sent_formula(), peak_bytes_,    peak_resident_bytes()};
    constexpr std::size_t fields = std::size(mine);
    std::vector<std::int64_t> all(fields * std::size_t(work_.world.size()));
    ctx_.groups()
        .along_all()
        .all_gather(mine, all.data(), std::int64_t(fields),
                    dtm::comm::call{"all_gather", "usage", 0, dtm::comm::call_site::current()})
        .wait();
    std::vector<rank_usage> result;
    for (int rank = 0; rank < work_.world.size(); ++rank) {
      std::int64_t const* const row = all.data() + std::size_t(rank) * fields;
      result.push_back({rank, row[0], row[1], row[2], row[3], row[4], row[5]});
    }
    return result;
  }

  static std::string contract_table() {
    std::string text;
    auto const add = [&](dtm::contract_text const& row) {
      text += row.module + "\n  inputs    " + row.inputs + "\n  outputs   " + row.outputs +
              "\n  forward   " + row.forward + "\n  backward  " + row.backward + "\n  saved     " +
              row.saved + "\n  budget    " + row.budget + "\n";
    };
    std::string const between = "\n            ";
    add(dtm::describe_contract<typename model_type::pair_type>(between));
    add(dtm::describe_contract<typename model_type::rel_pos_type>(between));
    add(dtm::describe_contract<typename block::out_type>(between));
    add(dtm::describe_contract<typename block::in_type>(between));
    add(dtm::describe_contract<typename block::transition_type>(between));
    add(dtm::describe_contract<typename model_type::head_type>(between));
    add(dtm::describe_contract<typename model_type::loss_type>(between));
    return text;
  }

 private:
  static dtm::adam_options adam_options_of(training_settings const& settings) {
    dtm::adam_options options;
    options.learning_rate = settings.learning_rate;
    options.epsilon = settings.epsilon;
    return options;
  }

  auto sizes() const {
    return dtm::extents{dtm::bind<dtm::batch>(1), dtm::bind<dtm::tokens>(work_.input.padded),
                        dtm::bind<dtm::conformers>(1)};
  }

  model_type& initialised() {
    std::int64_t fan_in = 1;
    for (auto const& view : dtm::named_parameters(model_)) {
      if (view.extents.size() > 1)
        fan_in = view.extents.back();  // a bias has that of the weight before it
      std::vector<T> values(std::size_t(view.count));
      fill_initial(values.data(), view.count, work_.settings.seed, view.name, fan_in);
      view.assign(values);
    }
    return model_;
  }

  // Each rank fills its tile as a function of global indices; nothing is sent.
  batch_type make_batch() {
    auto const bound = sizes();
    features const& input = work_.input;
    batch_type batch{{ctx_, bound}, {ctx_, bound}, {ctx_, bound}, {ctx_, bound}, {ctx_, bound}};
    auto const pairs = batch.target.tile();
    range const rows{pairs.begin[1], pairs.end[1]}, columns{pairs.begin[2], pairs.end[2]};
    std::vector<T> token_mask, disto_mask;
    std::vector<std::int64_t> tokens;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      std::size_t const token = std::size_t(i);
      token_mask.push_back(T(float(input.token_mask[token])));
      disto_mask.push_back(T(float(input.resolved_mask[token])));
      std::int64_t const no_cyclic_chains = 0;
      for (std::int64_t feature :
           {std::int64_t(input.asym_id[token]), std::int64_t(input.residue_index[token]),
            std::int64_t(input.entity_id[token]), std::int64_t(input.token_index[token]),
            std::int64_t(input.sym_id[token]), no_cyclic_chains})
        tokens.push_back(feature);
    }
    batch.res_type.copy_from_host(residue_one_hot<T>(input, rows).data());
    batch.target.copy_from_host(distance_one_hot<T>(input, rows, columns).data());
    batch.token_mask.copy_from_host(token_mask.data());
    batch.disto_mask.copy_from_host(disto_mask.data());
    batch.features.copy_from_host(tokens.data());
    return batch;
  }

  // Bytes kept for backward, from the contracts.
  std::int64_t kept_formula() const {
    auto const at = [&]<class Module>(Module*) {
      return dtm::saved_bytes<typename Module::contract::saved>::at(ctx_.where(), sizes());
    };
    auto const of = [&]<class Module>() { return at(static_cast<Module*>(nullptr)); };
    return of.template operator()<typename model_type::pair_type>() +
           of.template operator()<typename model_type::rel_pos_type>() +
           work_.settings.blocks * (of.template operator()<typename block::out_type>() +
                                    of.template operator()<typename block::in_type>() +
                                    of.template operator()<typename block::transition_type>()) +
           of.template operator()<typename model_type::head_type>() +
           of.template operator()<typename model_type::loss_type>();
  }

  // Bytes sent by a rank in one step, mean over ranks, from the formulas of the contracts.
  std::int64_t sent_formula() {
    std::int64_t parameters = 0;
    for (auto const& view : dtm::named_parameters(model_)) parameters += view.count;
    mesh_volumes const volumes{work_.choice.cp0, work_.choice.cp1, work_.input.padded};
    double const u = volumes.tile() * double(Channels);
    bool const ring = std::is_same_v<Schedule, dtm::cannon>;
    double const triangle =
        ring ? volumes.cannon_forward() + volumes.cannon_backward() : 2 * volumes.all_to_all();
    double const activations =
        2 * double(work_.settings.blocks) * triangle * u     // two modules a block
        + 2 * volumes.transpose_single() * double(Channels)  // initial pair and back
        + 2 * volumes.transpose_pair() * double(Channels)    // distogram head and back
        + 2 * volumes.transpose_single();                    // two masks
    double const elements = activations * sizeof(T) + volumes.transpose_single() * 6 * 8 +
                            volumes.all_reduce(double(parameters)) * sizeof(dtm::accumulate_t<T>) +
                            volumes.all_reduce(2) * sizeof(dtm::accumulate_t<T>)  // the loss' sums
                            + volumes.all_reduce_rows(1) * 4;                     // the cyclic flag
    return std::int64_t(elements + 0.5);
  }

  task const& work_;
  context ctx_;
  model_type model_;
  batch_type batch_;
  dtm::adam<model_type> adam_;
  std::int64_t kept_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace example
