#include "dtm/modules/triangle_multiplication.hpp"

#include "sharded.hpp"

namespace dtm::golden {

namespace {

template <class Direction, class Schedule>
outcome run(sharded_context& ctx, case_file const& file) {
  whole const& x = file.real("input.x");
  if (x.extent(3) != 24)
    throw not_here{"built for 24 channels, the file has " + std::to_string(x.extent(3))};
  triangle_multiplication<Direction, fp64, 24, Schedule> module(ctx);
  return run_sharded(ctx, module, file, {{x, file.real("input.mask")}, {"y"}, {"x"}}, x.extent(0),
                     x.extent(1));
}

}  // namespace

outcome run_triangle_sharded(sharded_context& ctx, case_file const& file, bool is_outgoing,
                             bool by_ring) {
  if (by_ring)
    return is_outgoing ? run<outgoing, cannon>(ctx, file) : run<incoming, cannon>(ctx, file);
  return is_outgoing ? run<outgoing, channel_all_to_all>(ctx, file)
                     : run<incoming, channel_all_to_all>(ctx, file);
}

}  // namespace dtm::golden
