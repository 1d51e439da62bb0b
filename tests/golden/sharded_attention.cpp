#include <optional>

#include "dtm/modules/pairformer_noseq_layer.hpp"

#include "sharded.hpp"

namespace dtm::golden {

namespace {

constexpr std::int64_t channels = 24, heads = 3, width = 8;

/// Rows whose keys are all masked attend to whatever is there: padding would be more of it.
void require_no_padding(sharded_context& ctx, std::int64_t n, bool rows_are_whole) {
  std::int64_t const ranks = ctx.size<cp0>() * ctx.size<cp1>(),
                     parts = rows_are_whole ? ranks : ctx.size<cp0>();
  if (n % parts != 0)
    throw not_here{std::to_string(n) +
                   " tokens would be padded on this mesh, and padding is seen by "
                   "rows without a key"};
}

template <class Node, class Schedule>
outcome run(sharded_context& ctx, case_file const& file) {
  whole const& x = file.real("input.x");
  if (x.extent(3) != channels)
    throw not_here{"built for 24 channels, the file has " + std::to_string(x.extent(3))};
  require_no_padding(ctx, x.extent(1), std::is_same_v<Schedule, row_resident>);
  triangle_attention<Node, fp64, channels, heads, width, Schedule> module(ctx);
  return run_sharded(ctx, module, file, {{x, file.real("input.mask")}, {"y"}, {"x"}}, x.extent(0),
                     x.extent(1));
}

using all_to_all_schedules = pair_schedules<channel_all_to_all, row_resident>;
using ring_schedules = pair_schedules<cannon, ring>;

template <class Schedules>
outcome run_layer(sharded_context& ctx, case_file const& file) {
  whole const& z = file.real("input.z");
  require_no_padding(ctx, z.extent(1), std::is_same_v<typename Schedules::attention, row_resident>);
  pairformer_noseq_layer<fp64, channels, heads, width, Schedules> layer(ctx);
  return run_sharded(ctx, layer, file, {{z, file.real("input.pair_mask")}, {"z"}, {"z"}},
                     z.extent(0), z.extent(1));
}

/// The uniform numbers of a file as factors.
template <class Factors>
std::optional<Factors> factors_from(sharded_context& ctx, case_file const& file, int which,
                                    double rate) {
  whole uniform = file.real("input.dropout_uniform_" + std::to_string(which));
  std::int64_t const samples = uniform.extent(0), n = uniform.size() / samples;
  uniform.extents = {samples, n};
  Factors numbers(ctx, global_extents<2>{{samples, n}});
  fill_from(uniform, numbers);
  return factors_of(ctx, rate, numbers);
}

template <class Schedules>
outcome run_dropout(sharded_context& ctx, case_file const& file) {
  whole const& z = file.real("input.z");
  require_no_padding(ctx, z.extent(1), std::is_same_v<typename Schedules::attention, row_resident>);
  using layer_type = pairformer_noseq_layer<fp64, channels, heads, width, Schedules>;
  layer_type layer(ctx);
  each_parameter(layer, [&](std::string const& name, auto& parameter) {
    parameter.copy_from_host(file.real("param." + name).values.data());
  });
  auto const bound = extents{bind<batch>(z.extent(0)), bind<tokens>(z.extent(1))};
  typename layer_type::Z input(ctx, bound);
  typename layer_type::Mask mask(ctx, bound);
  fill_from(z, input);
  fill_from(file.real("input.pair_mask"), mask);
  using rows = row_factors<fp64>;
  double const rate = std::stod(file.text("dropout"));
  auto const made =
      layer.forward(ctx, std::move(input), mask,
                    {factors_from<rows>(ctx, file, 0, rate), factors_from<rows>(ctx, file, 1, rate),
                     factors_from<rows>(ctx, file, 2, rate),
                     factors_from<column_factors<fp64>>(ctx, file, 3, rate)});
  return {{"output.z", testing::full_tensor(ctx, made.y)}};
}

}  // namespace

outcome run_attention_sharded(sharded_context& ctx, case_file const& file, bool is_starting,
                              bool by_ring) {
  if (by_ring) return is_starting ? run<starting, ring>(ctx, file) : run<ending, ring>(ctx, file);
  return is_starting ? run<starting, row_resident>(ctx, file)
                     : run<ending, row_resident>(ctx, file);
}

outcome run_pair_dropout_sharded(sharded_context& ctx, case_file const& file, bool by_ring) {
  return by_ring ? run_dropout<ring_schedules>(ctx, file)
                 : run_dropout<all_to_all_schedules>(ctx, file);
}

outcome run_noseq_layer_sharded(sharded_context& ctx, case_file const& file, bool by_ring) {
  return by_ring ? run_layer<ring_schedules>(ctx, file)
                 : run_layer<all_to_all_schedules>(ctx, file);
}

}  // namespace dtm::golden
