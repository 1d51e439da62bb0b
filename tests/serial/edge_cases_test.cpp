// What the formulas do at their edges, and what the modules refuse.

#include <cmath>
#include <limits>
#include <type_traits>

#include "dtm/serial/adam.hpp"
#include "dtm/serial/distogram_model.hpp"
#include "dtm/serial/pairformer_noseq_module.hpp"
#include "gradient_check.hpp"

namespace {

using namespace dtm;
using testing::contains;
using testing::random_source;
using testing::real_array;
using integers = serial::array<std::int64_t>;

bool all_finite(real_array const& a) {
  for (double value : a.values)
    if (!std::isfinite(value)) return false;
  return true;
}

bool all_zero(real_array const& a) {
  return testing::largest(a) == 0;
}

double difference(real_array const& a, real_array const& b) {
  REQUIRE(a.extents == b.extents);
  double result = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    result = std::max(result, std::abs(a.values[i] - b.values[i]));
  return result;
}

/// One sample of tokens in one chain; every feature may be changed afterwards.
serial::relative_position_features one_chain(std::int64_t tokens) {
  serial::relative_position_features f;
  f.asym_id = f.entity_id = f.sym_id = f.cyclic_period = integers({1, tokens});
  f.residue_index = f.token_index = integers({1, tokens});
  for (std::int64_t i = 0; i < tokens; ++i) f.residue_index(0, i) = f.token_index(0, i) = i;
  return f;
}

/// Columns of the weight that pair (i, j) selects, found by a weight that is the identity.
std::vector<std::int64_t> columns(serial::relative_position_features const& f, std::int64_t i,
                                  std::int64_t j, bool fix_sym_check = true, bool cyclic = true) {
  serial::relative_position_encoder<double> module(139, fix_sym_check, cyclic);
  for (std::int64_t c = 0; c < 139; ++c) module.linear_layer.weight(c, c) = 1;
  auto const z = module.forward(f).y;
  std::vector<std::int64_t> result;
  for (std::int64_t c = 0; c < 139; ++c)
    if (z(0, i, j, c) == 1) result.push_back(c);
  return result;
}

using list = std::vector<std::int64_t>;

serial::distogram_model_options tiny() {
  serial::distogram_model_options options;
  options.token_s = 6;
  options.token_z = 4;
  options.num_blocks = 2;
  options.num_bins = 5;
  return options;
}

serial::distogram_batch<double> tiny_batch(random_source& random, std::int64_t tokens) {
  serial::distogram_batch<double> batch;
  batch.res_type = real_array({1, tokens, 33});
  for (std::int64_t i = 0; i < tokens; ++i) batch.res_type(0, i, random.integer(0, 32)) = 1;
  batch.positions = one_chain(tokens);
  batch.token_pad_mask = real_array({1, tokens}, 1.0);
  batch.token_disto_mask = real_array({1, tokens}, 1.0);
  batch.disto_target = real_array({1, tokens, tokens, 1, 5});
  for (std::int64_t i = 0; i < tokens; ++i)
    for (std::int64_t j = 0; j < tokens; ++j)
      batch.disto_target(0, i, j, 0, std::min<std::int64_t>(std::abs(i - j), 4)) = 1;
  return batch;
}

template <class To>
serial::array<To> cast(real_array const& a) {
  return {a.extents, std::vector<To>(a.values.begin(), a.values.end())};
}

}  // namespace

TEST_CASE("arrays: rows, positions and refusals") {
  real_array a({2, 3, 4});
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = static_cast<double>(i);
  CHECK(a(1, 2, 3) == 23);
  CHECK(a.row(1, 2)[0] == 20);
  CHECK(a.row(1)[0] == 12);
  CHECK(a.positions() == 6);
  CHECK(a.position(5)[3] == 23);
  CHECK(real_array().absent());
  CHECK_FALSE(real_array({}, 1.0).absent());
  CHECK(real_array({}, 1.0).size() == 1);
  CHECK(real_array({2, 0, 3}).positions() == 0);
  CHECK_THROWS_WITH(a += real_array({2, 3}),
                    contains("extents (2, 3) to one of extents (2, 3, 4)"));
  CHECK_THROWS_WITH(real_array({2, 2}, {1, 2, 3}), contains("needs 4 values, given are 3"));
}

TEST_CASE("layer norm: equal channels give the bias, and finite gradients") {
  random_source random(1);
  serial::layer_norm<double> module(4);
  random.fill_parameters(module);
  real_array const x({3, 4}, 2.5);
  auto const y = module.forward(x);
  for (std::int64_t p = 0; p < 3; ++p)
    for (std::int64_t c = 0; c < 4; ++c) CHECK(y(p, c) == module.bias(c));
  auto gradients = serial::zero_gradients(module);
  auto const dx = module.backward(x, random.filled({3, 4}), gradients);
  CHECK(all_finite(dx));
  CHECK(all_zero(gradients.weight));
  CHECK_FALSE(all_zero(gradients.bias));
}

TEST_CASE("sigmoid: no overflow at either end") {
  CHECK(serial::sigmoid(1000.0) == 1);
  CHECK(serial::sigmoid(-1000.0) == 0);
  CHECK(serial::sigmoid(0.0) == 0.5);
}

TEST_CASE("triangle multiplication: fully masked is the bias through projection and gate") {
  for (auto direction :
       {serial::triangle_direction::outgoing, serial::triangle_direction::incoming}) {
    random_source random(2);
    serial::triangle_multiplication<double> module(direction, 3);
    random.fill_parameters(module);
    real_array const x = random.filled({1, 3, 3, 3});
    auto const [y, kept] = module.forward(x, real_array({1, 3, 3}));
    CHECK(all_zero(kept.o));
    real_array w({1, 3, 3, 3});
    for (std::int64_t p = 0; p < 9; ++p)
      for (std::int64_t c = 0; c < 3; ++c) w.position(p)[c] = module.norm_out.bias(c);
    auto const gate = module.g_out.forward(module.norm_in.forward(x));
    CHECK(difference(y, serial::sigmoid_gate(module.p_out.forward(w), gate).y) < 1e-15);

    auto gradients = serial::zero_gradients(module);
    auto const dx = module.backward(kept, random.filled({1, 3, 3, 3}), gradients);
    CHECK(all_finite(dx));
    CHECK(all_zero(gradients.p_in.weight));
    CHECK(all_zero(gradients.g_in.weight));
    CHECK_FALSE(all_zero(gradients.norm_out.bias));
  }
}

TEST_CASE("triangle multiplication: incoming is outgoing seen from the transposed pair") {
  random_source random(3);
  serial::triangle_multiplication<double> outgoing(serial::triangle_direction::outgoing, 3);
  random.fill_parameters(outgoing);
  auto incoming = outgoing;
  incoming.direction = serial::triangle_direction::incoming;
  real_array const x = random.filled({1, 4, 4, 3});
  real_array const mask = random.filled({1, 4, 4}, 0, 1);
  real_array xt = x;
  real_array maskt = mask;
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j) {
      maskt(0, i, j) = mask(0, j, i);
      for (std::int64_t c = 0; c < 3; ++c) xt(0, i, j, c) = x(0, j, i, c);
    }
  // o is the same sum in both, only the gate of y reads the pair itself
  CHECK(difference(outgoing.forward(x, mask).kept.o, incoming.forward(xt, maskt).kept.o) < 1e-14);
}

TEST_CASE("triangle multiplication: the mask enters both edges of a triangle") {
  random_source random(4);
  serial::triangle_multiplication<double> module(serial::triangle_direction::outgoing, 3);
  random.fill_parameters(module);
  real_array const x = random.filled({1, 3, 3, 3});
  auto const full = module.forward(x, real_array({1, 3, 3}, 1.0)).kept.o;
  auto const half = module.forward(x, real_array({1, 3, 3}, 0.5)).kept.o;
  for (std::size_t i = 0; i < full.values.size(); ++i)
    CHECK(std::abs(half.values[i] - 0.25 * full.values[i]) < 1e-15);
}

TEST_CASE("relative positions: columns worked out by hand") {
  auto f = one_chain(80);
  CHECK(columns(f, 0, 0) == list{32, 66 + 32, 132, 133 + 2});
  CHECK(columns(f, 5, 3) == list{34, 66 + 65, 132, 133 + 2});
  CHECK(columns(f, 3, 5) == list{30, 66 + 65, 132, 133 + 2});
  CHECK(columns(f, 79, 0) == list{64, 66 + 65, 132, 133 + 2});
  CHECK(columns(f, 0, 79) == list{0, 66 + 65, 132, 133 + 2});

  f.residue_index(0, 4) = 3;  // tokens 3 and 4 are atoms of one residue
  CHECK(columns(f, 4, 3) == list{32, 66 + 33, 132, 133 + 2});

  f.asym_id(0, 7) = 1;  // another copy of the same entity
  f.sym_id(0, 7) = 1;
  CHECK(columns(f, 7, 0) == list{65, 66 + 65, 132, 133 + 3});
  CHECK(columns(f, 0, 7) == list{65, 66 + 65, 132, 133 + 1});
  f.sym_id(0, 7) = 9;
  CHECK(columns(f, 7, 0) == list{65, 66 + 65, 132, 133 + 4});
  f.entity_id(0, 7) = 1;  // another entity: no column 132, no chain
  CHECK(columns(f, 7, 0) == list{65, 66 + 65, 133 + 5});

  CHECK(columns(one_chain(1), 0, 0) == list{32, 66 + 32, 132, 133 + 2});
}

TEST_CASE("relative positions: without fix_sym_check the same chain has no chain distance") {
  auto f = one_chain(3);
  CHECK(columns(f, 1, 0, false) == list{33, 66 + 65, 132, 133 + 5});
  f.asym_id(0, 2) = 1;
  f.entity_id(0, 2) = 1;
  f.sym_id(0, 2) = 1;
  CHECK(columns(f, 2, 0, false) == list{65, 66 + 65, 133 + 3});
}

TEST_CASE("relative positions: rings wrap by the period of the second token, halves to even") {
  auto f = one_chain(12);
  f.cyclic_period = integers({1, 12}, 8);
  CHECK(columns(f, 7, 0)[0] == 32 - 1);
  CHECK(columns(f, 0, 7)[0] == 32 + 1);
  CHECK(columns(f, 4, 0)[0] == 32 + 4);   // 4 / 8 rounds to 0
  CHECK(columns(f, 11, 0)[0] == 32 + 3);  // 11 / 8 rounds to 1
  f.residue_index(0, 11) = 12;
  CHECK(columns(f, 11, 0)[0] == 32 - 4);  // 12 / 8 rounds to 2
  CHECK(columns(f, 7, 0, true, false)[0] == 32 + 7);
  f.cyclic_period(0, 0) = 0;  // period 10000 where a token has none, but only beside one that has
  CHECK(columns(f, 7, 0)[0] == 32 + 7);
  f.residue_index(0, 1) = 9998;
  CHECK(columns(f, 1, 0)[0] == 32 - 2);
  f.cyclic_period.fill(0);
  CHECK(columns(f, 1, 0)[0] == 64);
}

TEST_CASE("distogram loss: an empty mask gives 0 and a gradient of exactly 0") {
  random_source random(5);
  for (std::int64_t tokens : {1, 3}) {
    serial::distogram_loss<double> const module;
    real_array const pred = random.filled({2, tokens, tokens, 1, 4}, -50, 50);
    real_array const target = random.filled({2, tokens, tokens, 2, 4}, 0, 1);
    real_array const mask({2, tokens}, tokens == 1 ? 1.0 : 0.0);  // one token: only the diagonal
    auto const result = module.forward(pred, target, mask);
    CHECK(result.loss == 0);
    CHECK(all_zero(result.batch_loss));
    CHECK(all_zero(module.backward(result.kept, 1.0, real_array({2}, 1.0))));
  }
}

TEST_CASE("distogram loss: the diagonal, masked pairs and empty targets have no gradient") {
  random_source random(6);
  serial::distogram_loss<double> const module;
  real_array const pred = random.filled({1, 4, 4, 1, 3});
  real_array target = random.filled({1, 4, 4, 1, 3}, 0.1, 1);
  for (std::int64_t c = 0; c < 3; ++c) target(0, 0, 1, 0, c) = 0;
  real_array const mask({1, 4}, {1, 1, 1, 0});
  auto const dpred = module.backward(module.forward(pred, target, mask).kept, 1.0);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j) {
      bool const none = i == j || i == 3 || j == 3 || (i == 0 && j == 1);
      for (std::int64_t c = 0; c < 3; ++c) CHECK((dpred(0, i, j, 0, c) == 0) == none);
    }
}

TEST_CASE("distogram loss: variants agree where they should") {
  random_source random(7);
  real_array const pred = random.filled({2, 3, 3, 1, 4}, -3, 3);
  real_array const mask = random.filled({2, 3}, 0, 1);
  real_array one_hot({2, 3, 3, 1, 4});
  for (std::int64_t p = 0; p < 18; ++p) one_hot.position(p)[random.integer(0, 3)] = 1;
  real_array three({2, 3, 3, 3, 4});
  for (std::int64_t p = 0; p < 54; ++p)
    for (std::int64_t c = 0; c < 4; ++c) three.position(p)[c] = one_hot.position(p / 3)[c];
  serial::distogram_loss<double> const aggregated{true};
  serial::distogram_loss<double> const plain{false};

  auto const v2 = aggregated.forward(pred, one_hot, mask);
  auto const v1 = plain.forward(pred, one_hot, mask);
  CHECK(std::abs(v1.loss - v2.loss) < 1e-14);
  CHECK(difference(plain.backward(v1.kept, 0.7), aggregated.backward(v2.kept, 0.7)) < 1e-15);

  auto const identical = aggregated.forward(pred, three, mask);
  CHECK(std::abs(identical.loss - v2.loss) < 1e-14);
  CHECK(difference(aggregated.backward(identical.kept, 0.7), aggregated.backward(v2.kept, 0.7)) <
        1e-15);
}

TEST_CASE("distogram loss: the best distogram counts, the first of equals") {
  serial::distogram_loss<double> const module{false};
  real_array target({1, 2, 2, 1, 3});
  real_array pred({1, 2, 2, 3, 3});
  for (std::int64_t p = 0; p < 4; ++p) {
    target.position(p)[1] = 1;
    pred.position(3 * p + 1)[1] = 4;  // the second and the third are right and equal
    pred.position(3 * p + 2)[1] = 4;
  }
  auto const result = module.forward(pred, target, real_array({1, 2}, 1.0));
  CHECK(result.kept.attaining(0, 0) == 1);
  double const expected = std::log(std::exp(4.0) + 2) - 4;
  CHECK(std::abs(result.loss - expected * 2 / (2 + 1e-5)) < 1e-15);
  auto const dpred = module.backward(result.kept, 1.0);
  for (std::int64_t p = 0; p < 4; ++p)
    for (std::int64_t c = 0; c < 3; ++c) {
      CHECK(dpred.position(3 * p)[c] == 0);
      CHECK(dpred.position(3 * p + 2)[c] == 0);
    }
  CHECK(dpred(0, 0, 1, 1, 0) > 0);
  CHECK(dpred(0, 0, 1, 1, 1) < 0);
}

TEST_CASE("modules refuse what does not fit and name it") {
  serial::triangle_multiplication<double> tri_mul(serial::triangle_direction::outgoing, 3);
  CHECK_THROWS_WITH(tri_mul.forward(real_array({1, 2, 2, 4}), real_array({1, 2, 2})),
                    contains("triangle_multiplication: x has extents (1, 2, 2, 4)"));
  CHECK_THROWS_WITH(tri_mul.forward(real_array({1, 2, 3, 3}), real_array({1, 2, 2})),
                    contains("expected are (1, 2, 2, 3)"));
  CHECK_THROWS_WITH(tri_mul.forward(real_array({1, 2, 2, 3}), real_array({1, 2})),
                    contains("triangle_multiplication: mask"));
  CHECK_THROWS_AS(serial::linear<double>(3, 2).forward(real_array({4})), layout_error);
  auto f = one_chain(3);
  f.sym_id = integers({1, 2});
  CHECK_THROWS_WITH(serial::relative_position_encoder<double>(2).forward(f), contains("sym_id"));
  serial::distogram_loss<double> const loss;
  CHECK_THROWS_AS(
      loss.forward(real_array({1, 2, 2, 2, 3}), real_array({1, 2, 2, 1, 3}), real_array({1, 2})),
      argument_error);
  CHECK_THROWS_WITH(
      loss.forward(real_array({1, 2, 2, 1, 3}), real_array({1, 2, 2, 1, 4}), real_array({1, 2})),
      contains("distogram_loss: target"));
}

TEST_CASE("distogram model: parameters by name, in registration order") {
  serial::distogram_model<double> model(tiny());
  std::vector<std::string> names;
  for (auto const& parameter : serial::named_parameters(model)) names.push_back(parameter.name);
  std::vector<std::string> expected{"res_type_encoding.weight", "z_init_1.weight",
                                    "z_init_2.weight", "rel_pos.linear_layer.weight"};
  for (std::string layer : {"layers.0", "layers.1"}) {
    for (std::string module : {".tri_mul_out", ".tri_mul_in"})
      for (std::string parameter :
           {"norm_in.weight", "norm_in.bias", "p_in.weight", "g_in.weight", "norm_out.weight",
            "norm_out.bias", "p_out.weight", "g_out.weight"})
        expected.push_back(layer + module + "." + parameter);
    for (std::string module : {".tri_att_start", ".tri_att_end"})
      for (std::string parameter :
           {"layer_norm.weight", "layer_norm.bias", "linear.weight", "mha.linear_q.weight",
            "mha.linear_k.weight", "mha.linear_v.weight", "mha.linear_o.weight",
            "mha.linear_g.weight"})
        expected.push_back(layer + module + "." + parameter);
    for (std::string parameter :
         {"norm.weight", "norm.bias", "fc1.weight", "fc2.weight", "fc3.weight"})
      expected.push_back(layer + ".transition_z." + parameter);
  }
  expected.push_back("distogram_module.distogram.weight");
  expected.push_back("distogram_module.distogram.bias");
  CHECK(names == expected);
  CHECK(serial::named_parameters(model, "model")[1].name == "model.z_init_1.weight");
}

TEST_CASE("distogram model: what padded tokens contain reaches no gradient of real ones") {
  random_source random(8);
  serial::distogram_model<double> model(tiny());
  random.fill_parameters(model);
  auto const batch = tiny_batch(random, 5);
  auto padded = tiny_batch(random, 7);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t c = 0; c < 33; ++c) padded.res_type(0, i, c) = batch.res_type(0, i, c);
  for (std::int64_t i = 5; i < 7; ++i)
    padded.token_pad_mask(0, i) = padded.token_disto_mask(0, i) = 0;
  auto const loss_and_gradients = [&](auto const& b) {
    auto gradients = serial::zero_gradients(model);
    auto const result = model.forward(b);
    model.backward(result.kept, 1.0, gradients);
    return std::pair(result.loss, gradients);
  };
  auto [loss, gradients] = loss_and_gradients(batch);
  auto [padded_loss, padded_gradients] = loss_and_gradients(padded);
  CHECK(std::abs(loss - padded_loss) < 1e-14);
  auto const a = serial::named_parameters(gradients);
  auto const b = serial::named_parameters(padded_gradients);
  for (std::size_t p = 0; p < a.size(); ++p) {
    INFO(a[p].name);
    CHECK(difference(*a[p].values, *b[p].values) <= 1e-13 * testing::largest(*a[p].values));
  }
}

TEST_CASE("distogram model: one token has loss 0 and gradients of exactly 0") {
  random_source random(9);
  serial::distogram_model<double> model(tiny());
  random.fill_parameters(model);
  auto const result = model.forward(tiny_batch(random, 1));
  CHECK(result.loss == 0);
  auto gradients = serial::zero_gradients(model);
  model.backward(result.kept, 1.0, gradients);
  for (auto const& gradient : serial::named_parameters(gradients))
    CHECK(all_zero(*gradient.values));
}

TEST_CASE("distogram model: float runs in float and is near double") {
  static_assert(std::is_same_v<decltype(serial::distogram_model<float>::result::loss), float>);
  random_source random(10);
  serial::distogram_model<double> model(tiny());
  random.fill_parameters(model);
  serial::distogram_model<float> single(tiny());
  auto const wide = serial::named_parameters(model);
  auto const narrow = serial::named_parameters(single);
  // the double model starts from the rounded parameters, so that only the arithmetic differs
  for (std::size_t p = 0; p < wide.size(); ++p) {
    *narrow[p].values = cast<float>(*wide[p].values);
    wide[p].values->values.assign(narrow[p].values->values.begin(), narrow[p].values->values.end());
  }
  auto const batch = tiny_batch(random, 6);
  serial::distogram_batch<float> const batch_single{
      cast<float>(batch.res_type), batch.positions, cast<float>(batch.token_pad_mask),
      cast<float>(batch.token_disto_mask), cast<float>(batch.disto_target)};
  auto gradients = serial::zero_gradients(model);
  auto gradients_single = serial::zero_gradients(single);
  auto const result = model.forward(batch);
  auto const result_single = single.forward(batch_single);
  model.backward(result.kept, 1.0, gradients);
  single.backward(result_single.kept, 1.0f, gradients_single);
  double const loss_error = std::abs(result_single.loss - result.loss) / result.loss;
  double worst = 0;
  auto const a = serial::named_parameters(gradients);
  auto const b = serial::named_parameters(gradients_single);
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t i = 0; i < a[p].values->values.size(); ++i)
      worst = std::max(worst, std::abs(b[p].values->values[i] - a[p].values->values[i]) /
                                  testing::largest(*a[p].values));
  std::printf("distogram_model in float: loss %.1e  parameter gradients %.1e  tolerance 1e-04\n",
              loss_error, worst);
  CHECK(loss_error <= 1e-5);
  CHECK(worst <= 1e-4);
  CHECK(worst > 1e-12);  // otherwise something ran in double
}

TEST_CASE("distogram model: Adam lowers the loss") {
  random_source random(11);
  serial::distogram_model<double> model(tiny());
  model.each_parameter([&](std::string const& name, real_array& values) {
    if (name.find("norm") == std::string::npos) random.fill(values, -0.4, 0.4);
  });
  auto const batch = tiny_batch(random, 6);
  serial::adam_options options;
  options.learning_rate = 1e-2;
  serial::adam<double> optimiser(serial::named_parameters(model), options);
  double const start = model.forward(batch).loss;
  for (int step = 0; step < 60; ++step) {
    auto gradients = serial::zero_gradients(model);
    model.backward(model.forward(batch).kept, 1.0, gradients);
    auto const list_of_gradients = serial::named_parameters(gradients);
    serial::clip_gradient_norm(list_of_gradients, 10.0);
    optimiser.step(list_of_gradients);
  }
  double const end = model.forward(batch).loss;
  std::printf("distogram_model: loss %.3f before, %.3f after 60 steps\n", start, end);
  CHECK(end < start / 2);
}

TEST_CASE("triangle attention: a row without keys is the mean of all values") {
  auto const check = [](auto zero, double infinity) {
    using T = decltype(zero);
    random_source random(21);
    serial::triangle_attention<T> module(serial::triangle_node::starting, 3, 2, 2);
    module.infinity = T(infinity);
    module.each_parameter([&](std::string const&, serial::array<T>& values) {
      values = cast<T>(random.filled(values.extents));
    });
    auto const x = cast<T>(random.filled({1, 4, 4, 3}));
    serial::array<T> mask({1, 4, 4}, T(1));
    for (std::int64_t j = 0; j < 4; ++j) mask(0, 2, j) = T(0);
    auto const [y, kept] = module.forward(x, mask);
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t j = 0; j < 4; ++j)
        for (std::int64_t k = 0; k < 4; ++k) CHECK(kept.p(0, 2, h, j, k) == T(0.25));
    CHECK(kept.p(0, 1, 0, 0, 0) != T(0.25));
    mask(0, 2, 1) = T(1);  // a single key has all of it
    CHECK(module.forward(x, mask).kept.p(0, 2, 0, 3, 1) == T(1));
  };
  check(1.0, 1e18);
  check(1.0f, 1e9);
}

TEST_CASE("triangle attention: one token is its own value, and scores have no gradient") {
  for (auto node : {serial::triangle_node::starting, serial::triangle_node::ending}) {
    random_source random(22);
    serial::triangle_attention<double> module(node, 3, 2, 2);
    random.fill_parameters(module);
    real_array const x = random.filled({2, 1, 1, 3}), mask({2, 1, 1}, 1.0);
    auto const [y, kept] = module.forward(x, mask);
    auto const gated = serial::sigmoid_gate(kept.v, module.mha.linear_g.forward(kept.u)).y;
    CHECK(difference(y, module.mha.linear_o.forward(gated)) == 0);
    auto gradients = serial::zero_gradients(module);
    module.backward(kept, random.filled({2, 1, 1, 3}), gradients);
    CHECK(all_zero(gradients.mha.linear_q.weight));
    CHECK(all_zero(gradients.mha.linear_k.weight));
    CHECK(all_zero(gradients.linear.weight));
    CHECK_FALSE(all_zero(gradients.mha.linear_v.weight));
  }
}

TEST_CASE("triangle attention: the ending node is the starting one of the transposed pair") {
  random_source random(23);
  serial::triangle_attention<double> ending(serial::triangle_node::ending, 3, 2, 2);
  random.fill_parameters(ending);
  auto starting = ending;
  starting.node = serial::triangle_node::starting;
  real_array const x = random.filled({2, 4, 4, 3}), mask = random.filled({2, 4, 4}, 0, 1);
  auto const y = ending.forward(x, mask).y;
  CHECK(difference(y, starting.forward(x, mask).y) > 1e-3);
  auto const other = starting.forward(serial::transposed(x), serial::transposed(mask)).y;
  CHECK(difference(y, serial::transposed(other)) == 0);
  CHECK_THROWS_WITH(starting.forward(x, random.filled({2, 4, 3})),
                    contains("triangle_attention: mask has extents (2, 4, 3)"));
  CHECK_THROWS_WITH(starting.forward(random.filled({2, 4, 3, 3}), mask),
                    contains("triangle_attention: x has extents"));
}

TEST_CASE("dropout: factors, draws and refusals") {
  using serial::dropped;
  auto const rows = serial::dropout_uniform({7, 3, 2, 1}, dropped::rows, 2, 300);
  CHECK(rows.extents == serial::extent_list{2, 300, 1, 1});
  auto const factors = serial::dropout_factors<double>(rows, 0.25);
  double kept = 0;
  for (std::size_t i = 0; i < factors.values.size(); ++i) {
    CHECK((factors.values[i] == 0 || factors.values[i] == 1 / 0.75));
    CHECK((factors.values[i] != 0) == (rows.values[i] >= 0.25));
    kept += factors.values[i] != 0;
  }
  CHECK(std::abs(kept / 600 - 0.75) < 4 * std::sqrt(0.25 * 0.75 / 600));  // four deviations
  CHECK(serial::dropout_factors<double>(rows, 0).values == std::vector<double>(600, 1.0));
  CHECK(serial::dropout_factors<double>(real_array({1}, {0.25}), 0.25)(0) > 0);  // kept at the rate

  // the draw is a function of all that names it, of nothing else
  CHECK(serial::dropout_uniform({7, 3, 2, 1}, dropped::columns, 2, 300).values == rows.values);
  for (serial::dropout_draw other :
       {serial::dropout_draw{8, 3, 2, 1}, {7, 4, 2, 1}, {7, 3, 1, 1}, {7, 3, 2, 2}})
    CHECK(serial::dropout_uniform(other, dropped::rows, 2, 300).values != rows.values);

  random_source random(24);
  real_array const x = random.filled({1, 3, 3, 2});
  auto const by_row = serial::dropout(x, real_array({1, 3, 1, 1}, {0, 2, 1}));
  auto const by_column = serial::dropout(x, real_array({1, 1, 3, 1}, {0, 2, 1}));
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t c = 0; c < 2; ++c) {
      CHECK(by_row(0, 0, i, c) == 0);
      CHECK(by_row(0, 1, i, c) == 2 * x(0, 1, i, c));
      CHECK(by_column(0, i, 0, c) == 0);
      CHECK(by_column(0, i, 1, c) == 2 * x(0, i, 1, c));
    }
  for (double rate : {1.0, -0.1, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH(serial::dropout_factors<double>(rows, rate),
                      contains("it must be at least 0 and below 1"));
  CHECK_THROWS_WITH(serial::dropout(x, real_array({1, 4, 1, 1})),
                    contains("dropout: factors has extents (1, 4, 1, 1)"));
}

TEST_CASE("pairformer without sequence: no layers, dropped updates, masks of padding") {
  random_source random(25);
  real_array const z = random.filled({1, 3, 3, 4}), mask({1, 3, 3}, 1.0);
  serial::pairformer_noseq_module<double> const none(0, 4, 2, 2);
  CHECK(none.forward(z, mask).y.values == z.values);
  CHECK_THROWS_WITH(none.forward(z, mask, {{}}), contains("for 1 layers, there are 0"));

  serial::pairformer_noseq_layer<double> layer(4, 2, 2);
  random.fill_parameters(layer);
  real_array const zeros({1, 3, 1, 1}), columns({1, 1, 3, 1});
  auto const dropped = layer.forward(z, mask, {zeros, zeros, zeros, columns}).y;
  real_array expected = z;
  expected += layer.transition_z.forward(z).y;
  CHECK(dropped.values == expected.values);
  CHECK(all_finite(layer.forward(z, real_array({1, 3, 3})).y));

  auto const drawn = serial::pair_dropout<double>::drawn({1}, 0.5, 1, 64);
  CHECK(drawn.tri_mul_out.values != drawn.tri_mul_in.values);
  CHECK(drawn.tri_att_start.values != drawn.tri_att_end.values);
  auto const narrow = serial::pair_dropout<float>::drawn({1}, 0.5, 1, 64);
  CHECK(cast<float>(drawn.tri_att_end).values == narrow.tri_att_end.values);
}
