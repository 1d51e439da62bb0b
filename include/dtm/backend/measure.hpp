#pragma once
// What a piece of work costs a rank: memory and messages, planned or as it runs.
//
//   auto const cost = measure(ctx, [&] { return module.forward(ctx, x, mask); });
//   cost.peak.peak_bytes    the most of tensors and scratch, beside what was there before
//   cost.kept_bytes         of these, what is still there at the end, the result of the work included
//   cost.sent_bytes()       left this rank
//
// Local; what the work does is as collective as it is.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "dtm/comm/ledger.hpp"
#include "dtm/core/memory.hpp"

namespace dtm {

/// What one kind of collective along the same axes has sent.
struct collective_volume {
  std::string operation, axes;
  std::int64_t times = 0, sent_bytes = 0;

  friend bool operator==(collective_volume const&, collective_volume const&) = default;
};

struct measurement {
  memory_mark peak;
  std::int64_t kept_bytes = 0;
  std::vector<collective_volume> volumes;  // in the order of their first call

  std::int64_t sent_bytes() const {
    std::int64_t sum = 0;
    for (auto const& v : volumes) sum += v.sent_bytes;
    return sum;
  }
  std::int64_t collectives() const {
    std::int64_t sum = 0;
    for (auto const& v : volumes) sum += v.times;
    return sum;
  }
};

namespace detail {

inline std::vector<collective_volume> volumes_since(comm::ledger const& book, std::size_t first) {
  std::vector<collective_volume> volumes;
  for (std::size_t i = first; i < book.entries.size(); ++i) {
    auto const& e = book.entries[i];
    std::size_t at = 0;
    while (at < volumes.size() &&
           (volumes[at].operation != e.operation || volumes[at].axes != e.axes))
      ++at;
    if (at == volumes.size()) volumes.push_back({e.operation, e.axes});
    ++volumes[at].times;
    volumes[at].sent_bytes += e.sent_bytes();
  }
  return volumes;
}

}  // namespace detail

/// `name` is the tag under which memory notes the peak; it lives as long as the context.
template <class Context, class Work>
measurement measure(Context& ctx, Work&& work, char const* name = "measured") {
  auto& storage = ctx.memory();
  std::size_t const first = ctx.ledger().entries.size();
  std::int64_t const before = storage.current_bytes;
  auto const scope = storage.tagged(name);
  measurement result;
  auto const conclude = [&] {
    result.peak = scope.so_far();
    result.kept_bytes = storage.current_bytes - before;
    result.volumes = detail::volumes_since(ctx.ledger(), first);
  };
  if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
    work();
    conclude();
  } else {
    auto const made = work();
    conclude();
  }
  return result;
}

}  // namespace dtm
