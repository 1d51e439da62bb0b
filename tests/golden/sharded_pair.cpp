#include "dtm/modules/distogram_module.hpp"
#include "dtm/modules/losses/distogram_loss.hpp"
#include "dtm/modules/relative_position_encoder.hpp"
#include "dtm/modules/transition.hpp"
#include "sharded.hpp"

namespace dtm::golden {

namespace {

std::string sizes_of(whole const& a) {
  return serial::to_string(a.extents);
}

outcome run_transition_sharded(sharded_context& ctx, case_file const& file) {
  whole const &x = file.real("input.x"), &fc1 = file.real("param.fc1.weight");
  if (x.rank() != 4 || fc1.extents != serial::extent_list{96, 24})
    throw not_here{"built for a pair with 24 channels and 96 hidden ones, the file has x " +
                   sizes_of(x) + ", fc1 " + sizes_of(fc1)};
  transition<fp64, 24, 96> module(ctx);
  return run_sharded(ctx, module, file, {{x}, {"y"}, {"x"}}, x.extent(0), x.extent(1));
}

outcome run_relative_position_sharded(sharded_context& ctx, case_file const& file) {
  whole const& weight = file.real("param.linear_layer.weight");
  if (weight.extent(0) != 24 || file.number("r_max", 32) != 32 || file.number("s_max", 2) != 2)
    throw not_here{"built for 24 channels, r_max 32 and s_max 2, the file's weight is " +
                   sizes_of(weight)};
  char const* const names[] = {"asym_id",     "residue_index", "entity_id",
                               "token_index", "sym_id",        "cyclic_period"};
  auto const ids = file.integer("input.asym_id");
  whole features({ids.extent(0), ids.extent(1), 6});
  for (std::int64_t f = 0; f < 6; ++f) {
    auto const one = file.integer(std::string("input.") + names[f]);
    for (std::int64_t i = 0; i < one.size(); ++i)
      features.values[std::size_t(6 * i + f)] = double(one.values[std::size_t(i)]);
  }
  relative_position_encoder<fp64, 24> module(
      ctx, relative_position_options{file.flag("fix_sym_check", false),
                                     file.flag("cyclic_pos_enc", false)});
  return run_sharded(ctx, module, file, {{features}, {"z"}, {}}, ids.extent(0), ids.extent(1));
}

outcome run_distogram_module_sharded(sharded_context& ctx, case_file const& file) {
  whole const &z = file.real("input.z"), &weight = file.real("param.distogram.weight");
  if (weight.extents != serial::extent_list{64, 24} || file.number("num_distograms", 1) != 1)
    throw not_here{"built for 24 channels, 64 bins and one distogram, the file's weight is " +
                   sizes_of(weight)};
  distogram_module<fp64, 24, 64, 1> module(ctx);
  return run_sharded(ctx, module, file, {{z}, {"pdistogram"}, {"z"}}, z.extent(0), z.extent(1));
}

template <std::int64_t Distograms>
outcome run_loss_of(sharded_context& ctx, case_file const& file) {
  whole const &pred = file.real("input.pdistogram"), &target = file.real("input.disto_target");
  distogram_loss<fp64, 64, Distograms> loss;
  loss.aggregate_distogram = file.flag("aggregate_distogram", true);
  return run_sharded(
      ctx, loss, file,
      {{pred, target, file.real("input.token_disto_mask")}, {"loss", "batch_loss"}, {"pdistogram"}},
      pred.extent(0), pred.extent(1), target.extent(3));
}

outcome run_distogram_loss_sharded(sharded_context& ctx, case_file const& file) {
  whole const& pred = file.real("input.pdistogram");
  if (pred.extent(4) == 64 && pred.extent(3) == 1) return run_loss_of<1>(ctx, file);
  if (pred.extent(4) == 64 && pred.extent(3) == 2) return run_loss_of<2>(ctx, file);
  throw not_here{"built for 64 bins and one or two distograms, the file has " + sizes_of(pred)};
}

}  // namespace

sharded_runner find_sharded(std::string const& module) {
  if (module == "transition") return run_transition_sharded;
  if (module == "relative_position_encoder") return run_relative_position_sharded;
  if (module == "distogram_module") return run_distogram_module_sharded;
  if (starts_with(module, "distogram_loss")) return run_distogram_loss_sharded;
  return {};
}

}  // namespace dtm::golden
