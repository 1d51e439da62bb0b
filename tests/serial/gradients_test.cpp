// Hand-written gradients of every serial module against central differences.

#include "dtm/serial/distogram_model.hpp"
#include "dtm/serial/pairformer_noseq_module.hpp"
#include "gradient_check.hpp"

namespace {

using namespace dtm;
using testing::check_gradients;
using testing::random_source;
using testing::real_array;

/// Token features with two copies of a chain, another chain, residues of several tokens and a ring.
serial::relative_position_features features(random_source& random,
                                            serial::extent_list const& extents, bool cyclic) {
  serial::relative_position_features f;
  f.asym_id = random.integers(extents, 0, 2);
  f.residue_index = random.integers(extents, 0, 3);
  f.entity_id = random.integers(extents, 0, 1);
  f.token_index = random.integers(extents, 0, 50);
  f.sym_id = random.integers(extents, 0, 4);
  f.cyclic_period = random.integers(extents, cyclic ? 1 : 0, cyclic ? 3 : 0);
  return f;
}

void check_triangle(std::string const& name, serial::triangle_direction direction,
                    std::int64_t tokens, std::int64_t dim, bool fully_masked) {
  random_source random(11);
  serial::triangle_multiplication<double> module(direction, dim);
  random.fill_parameters(module);
  real_array x = random.filled({2, tokens, tokens, dim});
  real_array mask = random.filled({2, tokens, tokens}, 0, 1);
  if (fully_masked) mask.fill(0);
  check_gradients(
      name, module, {{"x", &x}}, [&] { return module.forward(x, mask).y; },
      [&](real_array const& dy, auto& gradients) {
        return std::vector{module.backward(module.forward(x, mask).kept, dy, gradients)};
      });
}

/// The constant of the mask is small: differences of scores have to survive beside it.
void check_attention(std::string const& name, serial::triangle_node node, std::int64_t tokens,
                     bool masked_row) {
  random_source random(13);
  serial::triangle_attention<double> module(node, 3, 2, 2);
  module.infinity = 2;
  random.fill_parameters(module);
  real_array x = random.filled({2, tokens, tokens, 3});
  real_array mask = random.filled({2, tokens, tokens}, 0, 1);
  if (masked_row)
    for (std::int64_t j = 0; j < tokens; ++j) mask(1, 0, j) = mask(1, j, 0) = 0;
  check_gradients(
      name, module, {{"x", &x}}, [&] { return module.forward(x, mask).y; },
      [&](real_array const& dy, auto& gradients) {
        return std::vector{module.backward(module.forward(x, mask).kept, dy, gradients)};
      });
}

template <class Module>
void set_infinity(Module& layer, double value) {
  layer.tri_att_start.infinity = layer.tri_att_end.infinity = value;
}

}  // namespace

TEST_CASE("linear: gradients") {
  for (bool bias : {false, true}) {
    random_source random(1);
    serial::linear<double> module(4, 3, bias);
    random.fill_parameters(module);
    real_array x = random.filled({2, 3, 4});
    check_gradients(
        bias ? "linear with bias" : "linear", module, {{"x", &x}},
        [&] { return module.forward(x); },
        [&](real_array const& dy, auto& gradients) {
          return std::vector{module.backward(x, dy, gradients)};
        });
  }
}

TEST_CASE("layer norm: gradients") {
  random_source random(2);
  serial::layer_norm<double> module(5);
  random.fill_parameters(module);
  real_array x = random.filled({2, 3, 5}, -2, 3);
  check_gradients(
      "layer_norm", module, {{"x", &x}}, [&] { return module.forward(x); },
      [&](real_array const& dy, auto& gradients) {
        return std::vector{module.backward(x, dy, gradients)};
      });
}

TEST_CASE("sigmoid gate: gradients") {
  random_source random(3);
  testing::no_parameters none;
  real_array x = random.filled({2, 7}, -2, 2);
  real_array g = random.filled({2, 7}, -3, 3);
  check_gradients(
      "sigmoid_gate", none, {{"x", &x}, {"g", &g}}, [&] { return serial::sigmoid_gate(x, g).y; },
      [&](real_array const& dy, auto&) {
        auto const kept = serial::sigmoid_gate(x, g);
        auto const cotangents = serial::sigmoid_gate_backward(kept.y, kept.gate, dy);
        return std::vector{cotangents.dx, cotangents.dg};
      });
}

TEST_CASE("transition: gradients") {
  for (std::int64_t out : {4, 3}) {
    random_source random(4);
    serial::transition<double> module(4, 6, out);
    random.fill_parameters(module);
    real_array x = random.filled({2, 3, 4});
    check_gradients(
        out == 4 ? "transition" : "transition to other channels", module, {{"x", &x}},
        [&] { return module.forward(x).y; },
        [&](real_array const& dy, auto& gradients) {
          return std::vector{module.backward(module.forward(x).kept, dy, gradients)};
        });
  }
}

TEST_CASE("triangle multiplication: gradients") {
  using serial::triangle_direction;
  check_triangle("tri_mul outgoing", triangle_direction::outgoing, 4, 3, false);
  check_triangle("tri_mul incoming", triangle_direction::incoming, 4, 3, false);
  check_triangle("tri_mul outgoing, one token", triangle_direction::outgoing, 1, 5, false);
  check_triangle("tri_mul incoming, one token", triangle_direction::incoming, 1, 5, false);
  check_triangle("tri_mul outgoing, all masked", triangle_direction::outgoing, 2, 3, true);
  check_triangle("tri_mul incoming, all masked", triangle_direction::incoming, 2, 3, true);
}

TEST_CASE("triangle attention: gradients") {
  using serial::triangle_node;
  check_attention("tri_att starting", triangle_node::starting, 3, false);
  check_attention("tri_att ending", triangle_node::ending, 3, false);
  check_attention("tri_att starting, one token", triangle_node::starting, 1, false);
  check_attention("tri_att ending, one token", triangle_node::ending, 1, false);
  check_attention("tri_att starting, a row masked", triangle_node::starting, 3, true);
  check_attention("tri_att ending, a row masked", triangle_node::ending, 3, true);
}

TEST_CASE("dropout: gradients") {
  random_source random(14);
  testing::no_parameters none;
  real_array x = random.filled({2, 3, 3, 2});
  for (serial::dropped what : {serial::dropped::rows, serial::dropped::columns}) {
    auto const factors =
        serial::dropout_factors<double>(serial::dropout_uniform({3}, what, 2, 3), 0.5);
    check_gradients(
        what == serial::dropped::rows ? "dropout of rows" : "dropout of columns", none, {{"x", &x}},
        [&] { return serial::dropout(x, factors); },
        [&](real_array const& dy, auto&) { return std::vector{serial::dropout(dy, factors)}; });
  }
}

TEST_CASE("pairformer layer without sequence: gradients") {
  for (bool with_dropout : {false, true}) {
    random_source random(15);
    serial::pairformer_noseq_layer<double> module(3, 2, 2);
    random.fill_parameters(module);
    set_infinity(module, 2);
    real_array z = random.filled({1, 3, 3, 3});
    real_array const mask = random.filled({1, 3, 3}, 0, 1);
    serial::pair_dropout<double> factors;
    if (with_dropout) factors = serial::pair_dropout<double>::drawn({4}, 0.5, 1, 3);
    check_gradients(
        with_dropout ? "pairformer layer, dropout" : "pairformer layer", module, {{"z", &z}},
        [&] { return module.forward(z, mask, factors).y; },
        [&](real_array const& dy, auto& gradients) {
          return std::vector{module.backward(module.forward(z, mask, factors).kept, dy, gradients)};
        });
  }
}

TEST_CASE("pairformer module without sequence: gradients") {
  random_source random(16);
  serial::pairformer_noseq_module<double> module(2, 3, 2, 1);
  module.each_parameter([&](std::string const&, real_array& values) {
    random.fill(values, -0.5,
                0.5);  // or the second layer's scores leave nothing of their gradients
  });
  for (auto& layer : module.layers) set_infinity(layer, 2);
  real_array z = random.filled({1, 2, 2, 3});
  real_array const mask = random.filled({1, 2, 2}, 0, 1);
  std::vector<serial::pair_dropout<double>> factors;
  for (std::uint32_t layer : {0u, 1u})
    factors.push_back(serial::pair_dropout<double>::drawn({5, 0, layer}, 0.25, 1, 2));
  check_gradients(
      "pairformer module", module, {{"z", &z}}, [&] { return module.forward(z, mask, factors).y; },
      [&](real_array const& dy, auto& gradients) {
        return std::vector{module.backward(module.forward(z, mask, factors).kept, dy, gradients)};
      });
}

TEST_CASE("relative position encoder: gradients") {
  for (bool fix_sym_check : {false, true})
    for (bool cyclic_pos_enc : {false, true}) {
      random_source random(5);
      serial::relative_position_encoder<double> module(2, fix_sym_check, cyclic_pos_enc);
      random.fill_parameters(module);
      auto const f = features(random, {2, 4}, true);
      check_gradients(
          std::string("rel_pos") + (fix_sym_check ? ", fix_sym_check" : "") +
              (cyclic_pos_enc ? ", cyclic_pos_enc" : ""),
          module, {}, [&] { return module.forward(f).y; },
          [&](real_array const& dy, auto& gradients) {
            module.backward(module.forward(f).kept, dy, gradients);
            return std::vector<real_array>{};
          });
    }
}

TEST_CASE("initial pair: gradients") {
  random_source random(6);
  serial::initial_pair<double> module(4, 3);
  random.fill_parameters(module);
  real_array s = random.filled({2, 3, 4});
  check_gradients(
      "initial_pair", module, {{"s", &s}}, [&] { return module.forward(s).y; },
      [&](real_array const& dy, auto& gradients) {
        return std::vector{module.backward(module.forward(s).kept, dy, gradients)};
      });
}

TEST_CASE("distogram module: gradients") {
  for (std::int64_t distograms : {1, 2}) {
    random_source random(8);
    serial::distogram_module<double> module(3, 4, distograms);
    random.fill_parameters(module);
    real_array z = random.filled({2, 3, 3, 3});
    check_gradients(
        "distogram_module, D = " + std::to_string(distograms), module, {{"z", &z}},
        [&] { return module.forward(z).y; },
        [&](real_array const& dy, auto& gradients) {
          return std::vector{module.backward(module.forward(z).kept, dy, gradients)};
        });
  }
}

TEST_CASE("distogram loss: gradients") {
  struct variant {
    std::int64_t conformers, distograms;
    bool aggregate;
  };
  for (variant v :
       {variant{1, 1, true}, {3, 1, true}, {1, 1, false}, {3, 2, false}, {2, 4, false}}) {
    random_source random(9);
    testing::no_parameters none;
    serial::distogram_loss<double> const module{v.aggregate};
    real_array pred = random.filled({2, 3, 3, v.distograms, 4}, -3, 3);
    real_array const target = random.filled({2, 3, 3, v.conformers, 4}, 0, 1);
    real_array const mask = random.filled({2, 3}, 0, 1);
    // both results at once: the loss first, then the batch losses
    check_gradients(
        "distogram_loss, K = " + std::to_string(v.conformers) +
            ", D = " + std::to_string(v.distograms) + (v.aggregate ? ", aggregated" : ""),
        none, {{"pred", &pred}},
        [&] {
          auto const result = module.forward(pred, target, mask);
          return real_array({3}, {result.loss, result.batch_loss(0), result.batch_loss(1)});
        },
        [&](real_array const& dy, auto&) {
          return std::vector{module.backward(module.forward(pred, target, mask).kept, dy(0),
                                             real_array({2}, {dy(1), dy(2)}))};
        });
  }
}

TEST_CASE("distogram model: gradients") {
  random_source random(10);
  serial::distogram_model_options options;
  options.token_s = 4;
  options.token_z = 4;
  options.heads = 2;
  options.num_blocks = 2;
  options.num_bins = 4;
  serial::distogram_model<double> module(options);
  random.fill_parameters(module);
  for (auto& layer : module.layers) {
    set_infinity(layer, 2);
    // the loss of a whole model is rounded: updates of attention must matter beside that
    for (auto* attention : {&layer.tri_att_start, &layer.tri_att_end})
      for (auto* map : {&attention->mha.linear_q, &attention->mha.linear_k,
                        &attention->mha.linear_v, &attention->mha.linear_o})
        for (double& weight : map->weight.values) weight *= 3;
  }
  serial::distogram_batch<double> batch;
  batch.res_type = random.filled({2, 4, 33}, 0, 1);
  batch.positions = features(random, {2, 4}, true);
  batch.token_pad_mask = real_array({2, 4}, {1, 1, 1, 1, 1, 1, 1, 0});
  batch.token_disto_mask = real_array({2, 4}, {1, 1, 0, 1, 1, 1, 1, 0});
  batch.disto_target = random.filled({2, 4, 4, 2, 4}, 0, 1);
  check_gradients(
      "distogram_model", module, {{"res_type", &batch.res_type}},
      [&] { return real_array({}, module.forward(batch).loss); },
      [&](real_array const& dy, auto& gradients) {
        return std::vector{module.backward(module.forward(batch).kept, dy.values[0], gradients)};
      });
}

TEST_CASE("the check notices a gradient that is off by one in a million") {
  random_source random(12);
  serial::transition<double> module(4, 6);
  random.fill_parameters(module);
  real_array x = random.filled({3, 4});
  real_array const dy = random.filled({3, 4});
  auto gradients = serial::zero_gradients(module);
  real_array dx = module.backward(module.forward(x).kept, dy, gradients);
  auto const loss = [&] { return testing::dot(dy, module.forward(x).y); };
  REQUIRE(testing::compare_gradient(loss, x, dx, random).elements <= testing::gradient_tolerance);
  real_array scaled = dx;
  for (double& value : scaled.values) value *= 1 + 1e-6;
  auto const wrong = testing::compare_gradient(loss, x, scaled, random);
  CHECK(wrong.elements > testing::gradient_tolerance);
  CHECK(wrong.direction > testing::gradient_tolerance);
  std::swap(dx.values[0], dx.values[1]);
  CHECK(testing::compare_gradient(loss, x, dx, random).elements > testing::gradient_tolerance);
}
