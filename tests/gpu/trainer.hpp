#pragma once
// A distogram model with its input and its optimiser, every one the same: what the tests of a
// captured step of training take steps with.

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "dtm/models/distogram_model.hpp"
#include "dtm/testing/draw.hpp"
#include "dtm/train/adam.hpp"

namespace dtm::testing {

inline double draw_one_hot(std::uint64_t key, place const& p) {
  std::uint64_t const count = std::uint64_t(p.extent.back());
  return bits(key, p.linear / count) % count == p.linear % count;
}

template <class Context, class Model>
struct trainer {
  using T = typename Model::element;
  Context& ctx;
  Model model;
  typename Model::batch_type batch;
  typename Model::loss_type::Loss d_loss, loss;
  adam<Model> optimiser;

  trainer(Context& where, int depth, std::int64_t token_count, double learning_rate)
      : ctx(where),
        model(where, depth),
        batch(make_batch(where, token_count)),
        d_loss(where, extents{}),
        loss(where, extents{}),
        optimiser(where, drawn(model), {.learning_rate = learning_rate}) {
    accumulate_t<T> const one = 1;
    d_loss.copy_from_host(&one);
  }

  void step() {
    auto result = model.forward(ctx, batch);
    auto pending = zero_gradients(ctx, model);
    model.backward(ctx, std::move(result.saved), batch, d_loss, pending);
    auto gradients = synchronise(ctx, std::move(pending));
    clip_gradient_norm(ctx, gradients, 1.0);
    optimiser.step(ctx, model, gradients);
    ctx.memory().copy_within(loss.data(), result.loss.data(), std::size_t(loss.bytes()));
  }

  std::vector<T> parameters() {
    std::vector<T> all;
    for (auto const& view : named_parameters(model)) {
      auto const values = view.values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  bool has_parameters_of(trainer& other) {
    auto const mine = parameters(), others = other.parameters();
    return std::memcmp(mine.data(), others.data(), mine.size() * sizeof(T)) == 0;
  }

 private:
  static auto make_batch(Context& ctx, std::int64_t token_count) {
    auto const bound =
        extents{bind<dtm::batch>(1), bind<tokens>(token_count), bind<conformers>(1)};
    typename Model::batch_type b{
        {ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}, {ctx, bound}};
    fill(b.res_type, draw_one_hot, key_of(1, "res_type"));
    fill(b.features, draw_small_integer, key_of(1, "features"));
    fill(b.token_mask, draw_binary_mask, key_of(1, "token_mask"));
    fill(b.disto_mask, draw_binary_mask, key_of(1, "disto_mask"));
    fill(b.target, draw_one_hot, key_of(1, "target"));
    return b;
  }
  static Model& drawn(Model& model) {
    for (auto const& view : named_parameters(model)) {
      std::vector<T> values;
      for (std::int64_t i = 0; i < view.count; ++i)
        values.push_back(to_element<T>(
            draw_parameter(view.name, key_of(1, view.name), view.extents, std::uint64_t(i))));
      view.assign(values);
    }
    return model;
  }
};

}  // namespace dtm::testing
