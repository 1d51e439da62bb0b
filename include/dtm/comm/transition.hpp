#pragma once
// What every typed collective shares: the call's identity for signatures and ledger, the result
// that is on its way, and the check of its operand. One file a collective beside this one;
// apply.hpp gathers them.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtm/comm/agreement.hpp"
#include "dtm/comm/begin.hpp"
#include "dtm/comm/exchange.hpp"
#include "dtm/comm/group.hpp"
#include "dtm/core/host_copy.hpp"
#include "dtm/core/scratch.hpp"

namespace dtm::comm {

namespace detail {

/// "[0, 3, 7]": global index of an element of a tile.
template <int Rank>
std::string index_text(box<Rank> const& tile, std::int64_t offset) {
  std::string text;
  for (int d = Rank - 1; d >= 0; --d) {
    text =
        std::to_string(tile.begin[d] + offset % tile.extent(d)) + (text.empty() ? "" : ", " + text);
    offset /= tile.extent(d);
  }
  return "[" + text + "]";
}

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    hash ^= value >> (8 * byte) & 0xff;
    hash *= 0x100000001b3ull;
  }
  return hash;
}

template <class P>
constexpr std::uint64_t placement_code() {
  if constexpr (dtm::detail::is_shard<P>)
    return 16u + unsigned(dtm::detail::shard_dimension<P>);
  else if constexpr (std::is_same_v<P, partial<dtm::sum>>)
    return 1;
  else if constexpr (std::is_same_v<P, partial<dtm::max>>)
    return 2;
  else
    return 3;
}

template <class Mesh, class Shape, class... P>
constexpr std::uint64_t layout_code(layout<Mesh, Shape, P...>*) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  ((hash = mix(hash, placement_code<P>())), ...);
  return hash;
}

}  // namespace detail

/// Hash of element type, global shape, source and target layout: what ranks must agree on.
template <class Source, class Target>
std::uint64_t layout_signature(global_extents<Source::rank> const& extents) {
  std::uint64_t hash = detail::layout_code(static_cast<typename Source::layout_type*>(nullptr));
  hash =
      detail::mix(hash, detail::layout_code(static_cast<typename Target::layout_type*>(nullptr)));
  for (char const* name = element_name<typename Source::element_type>(); *name != 0; ++name)
    hash = detail::mix(hash, std::uint64_t(*name));
  for (int d = 0; d < Source::rank; ++d) hash = detail::mix(hash, std::uint64_t(extents[d]));
  return hash;
}
template <class Source, class Target>
std::uint64_t layout_signature(Source const& source) {
  return layout_signature<Source, Target>(source.global());
}

/// A result on its way. `Finish` unpacks the received buffer; wait() must be called. A result that is not
/// there yet is made by `Finish` when what was sent is gone: one tile less at the peak.
template <class Context, class Result, class Messages, class Finish>
class [[nodiscard]] in_flight {
 public:
  using element_type = typename Result::element_type;

  in_flight(Context& ctx, Result result, scratch<element_type> sent, scratch<element_type> received,
            Messages messages, Finish finish)
      : in_flight(ctx, std::nullopt, std::move(sent), std::move(received), std::move(messages),
                  std::move(finish)) {
    result_.emplace(std::move(result));
  }
  in_flight(Context& ctx, std::nullopt_t, scratch<element_type> sent,
            scratch<element_type> received, Messages messages, Finish finish)
      : ctx_(ctx),
        sent_(std::move(sent)),
        received_(std::move(received)),
        messages_(std::move(messages)),
        finish_(std::move(finish)) {}

  Result wait() {
    messages_.wait();
    sent_ = {};
    if constexpr (requires { finish_.template make<Result>(ctx_); })
      if (!result_) result_.emplace(finish_.template make<Result>(ctx_));
    finish_(ctx_, *result_, static_cast<element_type const*>(received_.data()));
    received_ = {};
    return *std::move(result_);
  }

 private:
  Context& ctx_;
  std::optional<Result> result_;
  scratch<element_type> sent_, received_;
  Messages messages_;
  Finish finish_;
};

namespace detail {

/// Well-formed where ranks may be able to read each other's tiles where they lie.
template <class X, class Ranks>
requires(std::is_same_v<typename X::device_type, host> ||
         std::is_same_v<typename X::device_type, planned<host>>) &&
    requires(Ranks const& ranks) {
  ranks.shares_memory();
}
void require_tiles(Ranks const&) {}

/// What takes boxes out of other ranks' tiles where those can be read. Of a layout it knows boxes alone: one
/// type serves all layouts of a rank.
template <class T, int Rank, bool Add>
struct box_reader {
  struct source {
    box<Rank> tile, part;
  };
  T* to;
  box<Rank> to_tile;
  bool first_assigns = false;  // of sums: the others are added
  std::vector<source> of_peers;

  void operator()(int peer, T const* from) const {
    auto const& [tile, part] = of_peers[std::size_t(peer)];
    if constexpr (Add)
      if (peer > 0 || !first_assigns) return add_box(from, tile, to, to_tile, part);
    copy_box(from, tile, to, to_tile, part);
  }
};

}  // namespace detail

struct nothing_to_finish {
  template <class Context, class Result, class T>
  void operator()(Context&, Result&, T const*) const {}
};

template <class Mesh, class Shape, class... P>
constexpr bool pending_maximum(layout<Mesh, Shape, P...>*) {
  return (std::is_same_v<P, partial<max>> || ...);
}

/// Check level 3; what lies beyond the channels of planes<C> is not looked at.
template <class Context, class X>
void require_finite(Context& ctx, X const& x, char const* operation, char const* name,
                    call_site where) {
  if constexpr (has_values<typename X::device_type> && floating_element<typename X::element_type> &&
                requires { ctx.world(); }) {
    world& ranks = ctx.world();
    if (int(ranks.level()) < int(check_level::data)) return;
    constexpr bool maximum =
        pending_maximum(static_cast<typename X::layout_type*>(nullptr));  // starts at -infinity
    agree(
        ranks,
        [&] {
          auto const tile = x.tile();
          auto const values = on_host(x);
          detail::each_run(
              tile, without_padding(tile, typename X::shape_type{}), [&](auto offset, auto run) {
                for (std::int64_t i = offset; i < offset + run; ++i)
                  if (std::isnan(double(values[i])) || (!maximum && std::isinf(double(values[i]))))
                    throw replication_error("dtm " + std::string(operation) + ": element " +
                                            detail::index_text(tile, i) + " of " +
                                            (*name != 0 ? name : "the operand") + " is " +
                                            std::to_string(double(values[i])) +
                                            "; find the operation that made it");
              });
        },
        where);
  }
}

}  // namespace dtm::comm
