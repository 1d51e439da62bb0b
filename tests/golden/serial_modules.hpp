#pragma once
// The serial modules as runners of golden files. Sizes come from the parameters in the file, the
// rest from its metadata.

#include "dtm/serial/distogram_loss.hpp"
#include "dtm/serial/distogram_module.hpp"
#include "dtm/serial/pairformer_noseq_module.hpp"
#include "dtm/serial/relative_position_encoder.hpp"
#include "dtm/serial/transition.hpp"
#include "dtm/serial/triangle_multiplication.hpp"
#include "golden.hpp"

namespace dtm::golden {

inline outcome run_transition(case_file const& file) {
  whole const& fc1 = file.real("param.fc1.weight");
  serial::transition<double> module(fc1.extent(1), fc1.extent(0),
                                    file.real("param.fc3.weight").extent(0));
  load_parameters(file, module);
  auto gradients = serial::zero_gradients(module);
  outcome result;
  auto const [y, kept] = module.forward(file.real("input.x"));
  result["output.y"] = y;
  result["grad_input.x"] = module.backward(kept, file.real("grad_output.y"), gradients);
  store_gradients(gradients, result);
  return result;
}

/// A module of a pair and its mask.
template <class Module>
outcome run_masked(case_file const& file, Module module, std::string const& x,
                   std::string const& mask, std::string const& y) {
  load_parameters(file, module);
  auto gradients = serial::zero_gradients(module);
  outcome result;
  auto const [value, kept] = module.forward(file.real("input." + x), file.real("input." + mask));
  result["output." + y] = value;
  result["grad_input." + x] = module.backward(kept, file.real("grad_output." + y), gradients);
  store_gradients(gradients, result);
  return result;
}

inline outcome run_triangle_multiplication(case_file const& file,
                                           serial::triangle_direction direction) {
  serial::triangle_multiplication<double> const module(direction,
                                                       file.real("param.norm_in.weight").extent(0));
  return run_masked(file, module, "x", "mask", "y");
}

inline outcome run_triangle_attention(case_file const& file, serial::triangle_node node) {
  serial::triangle_attention<double> module(node, file.number("c_in", 0),
                                            file.number("c_hidden", 0), file.number("no_heads", 0));
  module.infinity = std::stod(file.text("inf"));
  return run_masked(file, module, "x", "mask", "y");
}

inline serial::pairformer_noseq_layer<double> pairformer_noseq_layer(case_file const& file) {
  return {file.number("token_z", 0), file.number("pairwise_head_width", 0),
          file.number("pairwise_num_heads", 0)};
}

inline outcome run_pairformer_noseq_layer(case_file const& file) {
  return run_masked(file, pairformer_noseq_layer(file), "z", "pair_mask", "z");
}

inline outcome run_relative_position_encoder(case_file const& file) {
  serial::relative_position_encoder<double> module(
      file.real("param.linear_layer.weight").extent(0), file.flag("fix_sym_check", false),
      file.flag("cyclic_pos_enc", false), file.number("r_max", 32), file.number("s_max", 2));
  load_parameters(file, module);
  auto gradients = serial::zero_gradients(module);
  outcome result;
  auto const [z, kept] =
      module.forward({file.integer("input.asym_id"), file.integer("input.residue_index"),
                      file.integer("input.entity_id"), file.integer("input.token_index"),
                      file.integer("input.sym_id"), file.integer("input.cyclic_period")});
  result["output.z"] = z;
  module.backward(kept, file.real("grad_output.z"), gradients);
  store_gradients(gradients, result);
  return result;
}

inline outcome run_distogram_module(case_file const& file) {
  std::int64_t const distograms = file.number("num_distograms", 1);
  whole const& weight = file.real("param.distogram.weight");
  serial::distogram_module<double> module(weight.extent(1), weight.extent(0) / distograms,
                                          distograms);
  load_parameters(file, module);
  auto gradients = serial::zero_gradients(module);
  outcome result;
  auto const [logits, kept] = module.forward(file.real("input.z"));
  result["output.pdistogram"] = logits;
  result["grad_input.z"] = module.backward(kept, file.real("grad_output.pdistogram"), gradients);
  store_gradients(gradients, result);
  return result;
}

inline outcome run_distogram_loss(case_file const& file) {
  serial::distogram_loss<double> const loss{file.flag("aggregate_distogram", true)};
  outcome result;
  auto const forward = loss.forward(file.real("input.pdistogram"), file.real("input.disto_target"),
                                    file.real("input.token_disto_mask"));
  result["output.loss"] = whole({}, forward.loss);
  whole upstream = serial::zeros_like(forward.batch_loss);
  if (file.has("output.batch_loss")) {
    result["output.batch_loss"] = forward.batch_loss;
    if (file.has("grad_output.batch_loss")) upstream = file.real("grad_output.batch_loss");
  }
  double const d_loss = file.real("grad_output.loss").values.at(0);
  result["grad_input.pdistogram"] = loss.backward(forward.kept, d_loss, upstream);
  return result;
}

inline registry serial_modules() {
  registry known;
  known.add("transition", run_transition);
  known.add("triangle_multiplication_outgoing", [](case_file const& file) {
    return run_triangle_multiplication(file, serial::triangle_direction::outgoing);
  });
  known.add("triangle_multiplication_incoming", [](case_file const& file) {
    return run_triangle_multiplication(file, serial::triangle_direction::incoming);
  });
  known.add("triangle_attention_starting", [](case_file const& file) {
    return run_triangle_attention(file, serial::triangle_node::starting);
  });
  known.add("triangle_attention_ending", [](case_file const& file) {
    return run_triangle_attention(file, serial::triangle_node::ending);
  });
  known.add("pairformer_noseq_layer", run_pairformer_noseq_layer);
  known.add("relative_position_encoder", run_relative_position_encoder);
  known.add("distogram_module", run_distogram_module);
  known.add("distogram_loss*", run_distogram_loss);  // also _aggregate and _ensemble
  return known;
}

}  // namespace dtm::golden
