#pragma once
// What typed collectives ask of the ranks along some mesh axes. `group` models it with MPI; other
// transports and the planner, which moves nothing, model it too.

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "call.hpp"

namespace dtm::comm {

template <class G, class T = float>
concept communicator = requires(G& group, T const* in, T* out, std::int64_t count,
                                std::span<std::int64_t const> counts, int rank, reduction how,
                                call who) {
  { std::as_const(group).rank() } -> std::same_as<int>;
  { std::as_const(group).size() } -> std::same_as<int>;
  { std::as_const(group).name() } -> std::convertible_to<std::string_view>;
  group.all_reduce(in, out, count, how, who).wait();
  group.all_gather(in, out, count, who).wait();
  group.reduce_scatter(in, out, count, how, who).wait();
  group.all_to_all(in, counts, out, counts, who).wait();
  group.broadcast(out, count, rank, who).wait();
  group.shift(in, out, count, rank, rank, who).wait();
  group.barrier(who).wait();
};

}  // namespace dtm::comm
