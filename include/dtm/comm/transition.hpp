#pragma once
// What every typed collective shares: the call's identity for signatures and ledger, and the result that is on its
// way. One file a collective beside this one; apply.hpp gathers them.
//
//   auto rows = apply<all_gather<cp1>>(ctx, z, "z");                 // waits
//   auto later = begin<all_gather<cp1>>(ctx, z, "z");  ...  auto rows = later.wait();
//
// The operand must stay alive and unchanged until wait.

#include <cstdint>
#include <optional>
#include <utility>

#include "dtm/core/scratch.hpp"
#include "dtm/comm/exchange.hpp"
#include "dtm/comm/group.hpp"
#include "dtm/contract/transitions.hpp"

namespace dtm::comm {

namespace detail {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  for (int byte = 0; byte < 8; ++byte) {
    hash ^= value >> (8 * byte) & 0xff;
    hash *= 0x100000001b3ull;
  }
  return hash;
}

template <class P>
constexpr std::uint64_t placement_code() {
  if constexpr (dtm::detail::is_shard<P>) return 16u + unsigned(dtm::detail::shard_dimension<P>);
  else if constexpr (std::is_same_v<P, partial<dtm::sum>>) return 1;
  else if constexpr (std::is_same_v<P, partial<dtm::max>>) return 2;
  else return 3;
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
std::uint64_t layout_signature(Source const& source) {
  std::uint64_t hash = detail::layout_code(static_cast<typename Source::layout_type*>(nullptr));
  hash = detail::mix(hash, detail::layout_code(static_cast<typename Target::layout_type*>(nullptr)));
  for (char const* name = element_name<typename Source::element_type>(); *name != 0; ++name)
    hash = detail::mix(hash, std::uint64_t(*name));
  for (int d = 0; d < Source::rank; ++d) hash = detail::mix(hash, std::uint64_t(source.global_extent(d)));
  return hash;
}

/// A result on its way. `Finish` unpacks the received buffer; wait() must be called.
template <class Result, class Finish>
class [[nodiscard]] in_flight {
 public:
  using element_type = typename Result::element_type;

  in_flight(Result result, scratch<element_type> sent, scratch<element_type> received, pending messages,
            Finish finish)
      : result_(std::move(result)), sent_(std::move(sent)), received_(std::move(received)),
        messages_(std::move(messages)), finish_(std::move(finish)) {}

  Result wait() {
    messages_.wait();
    finish_(result_, static_cast<element_type const*>(received_.data()));
    return std::move(result_);
  }

 private:
  Result result_;
  scratch<element_type> sent_, received_;
  pending messages_;
  Finish finish_;
};

struct nothing_to_finish {
  template <class Result, class T>
  void operator()(Result&, T const*) const {}
};

/// Runs one collective; specialised in one file each.
template <class Collective>
struct collective;

// What begin returns beside its compile error, so that nothing follows.
template <class Result>
struct refused {
  Result wait() { __builtin_unreachable(); }
};

}  // namespace dtm::comm

namespace dtm {

/// Starts a collective; `wait()` on what it returns gives the tensor. `name` is the tensor's name in messages and ledger.
template <class Collective, class Context, any_tensor X>
auto begin(Context& ctx, X const& x, char const* name = "",
           comm::call_site where = comm::call_site::current()) {
  detail::check_collective<Collective, X>();
  if constexpr (detail::accepts<Collective, X>)
    return comm::collective<Collective>::begin(ctx, x, name, where);
  else
    return comm::refused<detail::unchecked_after_t<Collective, X>>{};
}

/// Runs a collective to its end.
template <class Collective, class Context, any_tensor X>
detail::unchecked_after_t<Collective, X> apply(Context& ctx, X const& x, char const* name = "",
                                               comm::call_site where = comm::call_site::current()) {
  return begin<Collective>(ctx, x, name, where).wait();
}

}  // namespace dtm
