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
#include <dtm/backend/measure.hpp>
#include <dtm/contract/describe.hpp>
#include <dtm/core/host_copy.hpp>
#include <dtm/models/distogram_model.hpp>
#include <dtm/train/adam.hpp>

#include "contact_map.hpp"
#include "training.hpp"
#include "volumes.hpp"

namespace example {

using grid = dtm::mesh<dtm::dp, dtm::cp0, dtm::cp1>;

template <class Device, class T, std::int64_t Channels, class Schedules>
class sharded_training {
 public:
  using space = dtm::space<T, grid, Device>;
  using model_type = dtm::distogram_model<space, Channels, Channels, Schedules>;
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

  /// What each kind of module costs this rank, forward and backward; collective.
  std::vector<module_share> shares() {
    auto const& layer = model_.layers[0];
    auto gradients = dtm::zero_gradients(ctx_, model_);
    auto const s = dtm::linear(ctx_, batch_.res_type, model_.res_type_encoding.weight);
    auto const mask = dtm::outer_product(
        ctx_, batch_.token_mask,
        dtm::apply<dtm::transpose<dtm::cp0, dtm::cp1>>(ctx_, batch_.token_mask, "mask"));
    auto const z = model_.pair.forward(ctx_, s).y.clone();
    std::vector<module_share> all;
    auto const add = [&](char const* name, std::int64_t times, auto const& forward,
                         auto const& backward) {
      using clock = std::chrono::steady_clock;
      module_share share{name, times};
      ctx_.finish();
      auto const start = clock::now();
      auto const cost = dtm::measure(
          ctx_,
          [&] {
            std::int64_t const before = ctx_.memory().current_bytes;
            auto made = forward();
            share.kept_bytes = ctx_.memory().current_bytes - before;
            backward(std::move(made));
            ctx_.finish();
          },
          "share");
      share.seconds = std::chrono::duration<double>(clock::now() - start).count();
      share.sent_bytes = cost.sent_bytes();
      share.peak_bytes = cost.peak.peak_bytes;
      all.push_back(std::move(share));
    };
    auto const add_pair = [&](char const* name, std::int64_t times, auto const& module,
                              auto& module_gradients, auto const&... input) {
      add(
          name, times, [&] { return module.forward(ctx_, input...); },
          [&](auto made) {
            (void)module.backward(ctx_, std::move(made.saved), made.y, module_gradients);
          });
    };
    std::int64_t const blocks = work_.settings.blocks;
    auto& of_layer = gradients.layers[0];
    add_pair("initial_pair", 1, model_.pair, gradients.pair, s);
    add_pair("relative_position_encoder", 1, model_.rel_pos, gradients.rel_pos, batch_.features);
    add_pair("triangle_multiplication_outgoing", blocks, layer.tri_mul_out, of_layer.tri_mul_out, z,
             mask);
    add_pair("triangle_multiplication_incoming", blocks, layer.tri_mul_in, of_layer.tri_mul_in, z,
             mask);
    add_pair("triangle_attention_starting", blocks, layer.tri_att_start, of_layer.tri_att_start, z,
             mask);
    add_pair("triangle_attention_ending", blocks, layer.tri_att_end, of_layer.tri_att_end, z, mask);
    add_pair("transition", blocks, layer.transition_z, of_layer.transition_z, z);
    add_pair("distogram_module", 1, model_.distogram_module, gradients.distogram_module, z);
    auto const logits = model_.distogram_module.forward(ctx_, z).y.clone();
    typename model_type::loss_type const loss{};
    add(
        "distogram_loss", 1,
        [&] { return loss.forward(ctx_, logits, batch_.target, batch_.disto_mask); },
        [&](auto made) { (void)loss.backward(ctx_, std::move(made.saved), made.loss); });
    return all;
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
    add(dtm::describe_contract<typename block::mul_out>(between));
    add(dtm::describe_contract<typename block::mul_in>(between));
    add(dtm::describe_contract<typename block::att_start>(between));
    add(dtm::describe_contract<typename block::att_end>(between));
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
           work_.settings.blocks * of.template operator()<block>() +
           of.template operator()<typename model_type::head_type>() +
           of.template operator()<typename model_type::loss_type>();
  }

  // Bytes sent by a rank in one step, mean over ranks, from the formulas of the contracts.
  std::int64_t sent_formula() {
    std::int64_t parameters = 0;
    for (auto const& view : dtm::named_parameters(model_)) parameters += view.count;
    mesh_volumes const volumes{work_.choice.cp0, work_.choice.cp1, work_.input.padded};
    double const u = volumes.tile() * double(Channels);
    constexpr bool ring = std::is_same_v<typename Schedules::multiplication, dtm::cannon>;
    double const blocks = double(work_.settings.blocks), heads = 4,
                 attention =
                     ring ? volumes.ring(Channels, heads) : volumes.row_resident(Channels, heads),
                 attention_sums =
                     ring ? volumes.ring_sums(Channels, heads) : volumes.row_resident_sums(heads);
    double const triangle =
        ring ? volumes.cannon_forward() + volumes.cannon_backward() : 2 * volumes.all_to_all();
    double const activations =
        blocks * (2 * triangle * u + attention)              // two and two modules a block
        + 2 * volumes.transpose_single() * double(Channels)  // initial pair and back
        + 2 * volumes.transpose_pair() * double(Channels)    // distogram head and back
        + 2 * volumes.transpose_single();                    // two masks
    double const elements = activations * sizeof(T) +
                            blocks * attention_sums * sizeof(dtm::accumulate_t<T>) +
                            volumes.transpose_single() * 6 * 8 +
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
