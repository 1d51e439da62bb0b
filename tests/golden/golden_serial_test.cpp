// The serial modules against the golden files of $DTM_GOLDEN_DIR, or of tests/data/golden; then the
// check itself, with planted faults.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include "serial_modules.hpp"
#include "support/catch.hpp"

namespace {

using namespace dtm;

std::string const own_folder = DTM_GOLDEN_DEFAULT_DIR;

std::string own_file(std::string const& name) {
  return own_folder + "/" + name + ".safetensors";
}

void print(std::string const& text) {
  std::puts(text.c_str());
}
void quiet(std::string const&) {}

bool agrees(std::string const& name, golden::runner const& run) {
  auto const file = golden::case_file::load(own_file(name));
  return golden::compare(file, run(file)).passed();
}

}  // namespace

TEST_CASE("serial modules agree with every golden file") {
  auto const total =
      golden::run_folder(golden::folder_or(own_folder), golden::serial_modules(), print);
  std::fflush(stdout);
  CHECK(total.failed == 0);
  CHECK(total.passed > 0);  // a folder of unknown modules alone proves nothing
}

TEST_CASE("a fault in any single tensor fails its golden file") {
  auto const known = golden::serial_modules();
  int files = 0;
  for (std::string const& path : golden::files_in(own_folder)) {
    auto const file = golden::case_file::load(path);
    golden::runner const* run = known.find(file.module());
    if (run == nullptr) continue;
    golden::outcome const right = (*run)(file);
    REQUIRE(golden::compare(file, right).passed());
    ++files;
    for (auto const& [name, value] : right) {
      INFO(file.name() << " " << name);
      REQUIRE(value.size() > 0);
      double largest = 0;
      for (double v : value.values) largest = std::max(largest, std::abs(v));
      CHECK(largest >
            0);  // a reference that is all zero would accept a module that computes nothing
      auto const fails_with = [&](auto const& plant) {
        golden::outcome wrong = right;
        plant(wrong);
        return !golden::compare(file, wrong).passed();
      };
      CHECK(fails_with([&](auto& wrong) { wrong[name].values.back() += 1e-11 * largest; }));
      CHECK(fails_with([&](auto& wrong) {
        wrong[name].values.front() = std::numeric_limits<double>::quiet_NaN();
      }));
      CHECK(fails_with([&](auto& wrong) {
        for (double& v : wrong[name].values) v *= 2;
      }));
      CHECK(fails_with([&](auto& wrong) { wrong[name].extents.push_back(1); }));
      CHECK(fails_with([&](auto& wrong) { wrong.erase(name); }));
    }
    golden::outcome more = right;
    more["grad_param.unknown"] = golden::whole({1});
    CHECK_FALSE(golden::compare(file, more).passed());
    CHECK_FALSE(golden::compare(file, {}).passed());
  }
  CHECK(files == 21);
}

TEST_CASE("wrong oracles fail their golden files") {
  using golden::case_file;
  using golden::whole;
  for (std::string kind : {"base_b2_n12", "edge_b2_n12", "soft_b1_n12"}) {
    INFO(kind);
    CHECK_FALSE(agrees("triangle_multiplication_outgoing." + kind, [](case_file const& file) {
      return golden::run_triangle_multiplication(file, serial::triangle_direction::incoming);
    }));
    CHECK_FALSE(agrees("triangle_multiplication_incoming." + kind, [](case_file const& file) {
      return golden::run_triangle_multiplication(file, serial::triangle_direction::outgoing);
    }));
  }

  for (std::string kind : {"base_b2_n12", "edge_b2_n12", "soft_b1_n12"}) {
    INFO(kind);
    CHECK_FALSE(agrees("triangle_attention_starting." + kind, [](case_file const& file) {
      return golden::run_triangle_attention(file, serial::triangle_node::ending);
    }));
    CHECK_FALSE(agrees("triangle_attention_ending." + kind, [](case_file const& file) {
      return golden::run_triangle_attention(file, serial::triangle_node::starting);
    }));
  }

  SECTION("transition: SiLU on the other hidden half") {
    CHECK_FALSE(agrees("transition.base_b2_n12", [](case_file const& file) {
      serial::transition<double> module(24, 96);
      golden::load_parameters(file, module);
      std::swap(module.fc1, module.fc2);
      auto gradients = serial::zero_gradients(module);
      auto const [y, kept] = module.forward(file.real("input.x"));
      golden::outcome result;
      result["output.y"] = y;
      result["grad_input.x"] = module.backward(kept, file.real("grad_output.y"), gradients);
      golden::store_gradients(gradients, result);
      return result;
    }));
  }

  SECTION("relative positions: either flag the other way") {
    for (bool fix_sym_check : {false, true}) {
      auto const run = [&](case_file const& file) {
        serial::relative_position_encoder<double> module(24, fix_sym_check, !fix_sym_check);
        golden::load_parameters(file, module);
        auto gradients = serial::zero_gradients(module);
        auto const [z, kept] =
            module.forward({file.integer("input.asym_id"), file.integer("input.residue_index"),
                            file.integer("input.entity_id"), file.integer("input.token_index"),
                            file.integer("input.sym_id"), file.integer("input.cyclic_period")});
        golden::outcome result;
        result["output.z"] = z;
        module.backward(kept, file.real("grad_output.z"), gradients);
        golden::store_gradients(gradients, result);
        return result;
      };
      CHECK_FALSE(agrees("relative_position_encoder.base_b2_n12", run));
      CHECK_FALSE(agrees("relative_position_encoder.edge_b2_n12", run));
    }
  }

  SECTION("distogram head: bias forgotten in backward, or z not symmetrised there") {
    CHECK_FALSE(agrees("distogram_module.base_b2_n12", [](case_file const& file) {
      golden::outcome result = golden::run_distogram_module(file);
      result["grad_param.distogram.bias"].fill(0);
      return result;
    }));
    CHECK_FALSE(agrees("distogram_module.base_b2_n12", [](case_file const& file) {
      golden::outcome result = golden::run_distogram_module(file);
      for (double& v : result["grad_input.z"].values) v /= 2;
      return result;
    }));
  }

  SECTION("distogram loss: conformers averaged before the minimum, or forgotten") {
    auto const run = [](case_file const& file, auto const& change_target) {
      whole target = file.real("input.disto_target");
      serial::distogram_loss<double> const loss{false};
      auto const forward = loss.forward(file.real("input.pdistogram"), change_target(target),
                                        file.real("input.token_disto_mask"));
      golden::outcome result;
      result["output.loss"] = whole({}, forward.loss);
      result["grad_input.pdistogram"] =
          loss.backward(forward.kept, file.real("grad_output.loss").values[0]);
      return result;
    };
    auto const only_first = [](whole const& target) {
      auto const& e = target.extents;
      whole first({e[0], e[1], e[2], 1, e[4]});
      for (std::int64_t p = 0; p < first.positions(); ++p)
        for (std::int64_t c = 0; c < e[4]; ++c) first.position(p)[c] = target.position(p * e[3])[c];
      return first;
    };
    auto const averaged = [](whole const& target) {
      auto const& e = target.extents;
      whole mean({e[0], e[1], e[2], 1, e[4]});
      for (std::int64_t p = 0; p < target.positions(); ++p)
        for (std::int64_t c = 0; c < e[4]; ++c)
          mean.position(p / e[3])[c] += target.position(p)[c] / static_cast<double>(e[3]);
      return mean;
    };
    auto const unchanged = [](whole const& target) { return target; };
    std::string const ensemble = "distogram_loss_ensemble.base_b2_n12";
    CHECK(agrees(ensemble, [&](case_file const& file) { return run(file, unchanged); }));
    CHECK_FALSE(agrees(ensemble, [&](case_file const& file) { return run(file, only_first); }));
    CHECK_FALSE(agrees(ensemble, [&](case_file const& file) { return run(file, averaged); }));
    std::string const aggregate = "distogram_loss_aggregate.base_b2_n12";
    CHECK_FALSE(agrees(aggregate, [&](case_file const& file) { return run(file, only_first); }));
  }
}

TEST_CASE("the pair track of a Pairformer layer agrees with given draws of its dropouts") {
  // the sequence track reads z after all of this, and has no part in it
  auto const file = golden::case_file::load(own_file("pairformer_layer_dropout.base_b2_n12"));
  auto module = golden::pairformer_noseq_layer(file);
  module.each_parameter(
      [&](std::string const& name, golden::whole& values) { values = file.real("param." + name); });
  double const rate = std::stod(file.text("dropout"));
  auto const factors = [&](int which) {
    return serial::dropout_factors<double>(
        file.real("input.dropout_uniform_" + std::to_string(which)), rate);
  };
  auto const error = [&](serial::pair_dropout<double> const& dropout) {
    auto const z = module.forward(file.real("input.z"), file.real("input.pair_mask"), dropout).y;
    return golden::scaled_error(z, file.real("output.z"));
  };
  double const right = error({factors(0), factors(1), factors(2), factors(3)});
  std::printf("pairformer layer, dropout: z %.1e  tolerance 1.0e-12\n", right);
  CHECK(right <= 1e-12);
  CHECK(error({factors(1), factors(0), factors(2), factors(3)}) > 1e-3);
  CHECK(error({factors(0), factors(2), factors(1), factors(3)}) > 1e-3);
  CHECK(error({factors(0), factors(1), factors(2), {}}) > 1e-3);
}

TEST_CASE("an unknown module is skipped, not passed") {
  golden::registry known;
  known.add("transition", golden::run_transition);
  std::string text;
  auto const total =
      golden::run_folder(own_folder, known, [&](std::string const& line) { text += line + "\n"; });
  CHECK(total.passed == 1);
  CHECK(total.failed == 0);
  CHECK(total.skipped == 21);
  CHECK_THAT(text, testing::contains("distogram_module.base_b2_n12: skipped, no module"));
}

TEST_CASE("a runner that throws has failed") {
  golden::registry known;
  known.add("transition", [](golden::case_file const& file) -> golden::outcome {
    return {{"output.y", file.real("input.no_such_thing")}};
  });
  CHECK(golden::run_folder(own_folder, known, quiet).failed == 1);
}
