#pragma once
// Typed collectives as a module calls them:
//
//   auto rows = apply<all_gather<cp1>>(ctx, z, "z");                 // waits
//   auto later = begin<all_gather<cp1>>(ctx, z, "z");  ...  auto rows = later.wait();
//   auto next = shift_along<cp1>(ctx, z, 1, "z");      ...  z = next.wait();
//
// The operand must stay alive and unchanged until wait; a temporary does not compile. At check
// level 3 it must be finite: NaN or infinity on one rank is the same replication_error on all,
// with the global index of the element.
//
// apply takes over an operand that is not needed any more, a temporary or std::move(z). Its memory
// is free as soon as its content is on its way, or read where ranks share memory, and becomes the
// result's where an exchange has one rank.
//
// Only declarations: what runs comes with a backend header (dtm/host.hpp), so that a module header
// stays light.

#include "dtm/comm/call_site.hpp"
#include "dtm/contract/transitions.hpp"

namespace dtm::comm {

/// Runs one collective; specialised in one file each (comm/apply.hpp).
template <class Collective>
struct collective;

/// Exchanges of channel planes that are stored, or read, in the memory of peers (comm/shared_planes.hpp).
template <class X, class Context, class Group>
bool opens_planes(Context& ctx, Group& ranks);
template <class Tile, class Planes>
class planes_stored_by_peers;
template <class Tile, class Planes>
class planes_read_from_peers;

/// Check level 3: throws replication_error on all ranks unless every element is finite on every
/// rank. In a pending maximum -infinity is legal; the padding of planes<C> is not looked at.
template <class Context, class X>
void require_finite(Context& ctx, X const& x, char const* operation, char const* name,
                    call_site where);

// What begin returns beside its compile error, so that nothing follows.
template <class Result>
struct refused {
  Result wait() { __builtin_unreachable(); }
};

}  // namespace dtm::comm

namespace dtm {

/// Starts a collective; `wait()` on what it returns gives the tensor. `name` is the tensor's name
/// in messages and ledger.
template <class Collective, class Context, any_tensor X>
auto begin(Context& ctx, X const& x, char const* name = "",
           comm::call_site where = comm::call_site::current()) {
  detail::check_collective<Collective, X>();
  comm::require_finite(ctx, x, "collective", name, where);
  if constexpr (detail::accepts<Collective, X>)
    return comm::collective<Collective>::begin(ctx, x, name, where);
  else
    return comm::refused<detail::unchecked_after_t<Collective, X>>{};
}

template <class Collective, class Context, any_tensor X>
requires(!std::is_lvalue_reference_v<X>) auto begin(Context&, X&&, char const* = "") {
  static_assert(
      detail::false_for<X>,
      "dtm collective: the operand of begin must live until wait; give it a name, or use apply");
  return comm::refused<detail::unchecked_after_t<Collective, std::remove_cvref_t<X>>>{};
}

/// Runs a collective to its end.
template <class Collective, class Context, any_tensor X>
detail::unchecked_after_t<Collective, X> apply(Context& ctx, X const& x, char const* name = "",
                                               comm::call_site where = comm::call_site::current()) {
  return begin<Collective>(ctx, x, name, where).wait();
}

/// The same of an operand that is not needed any more.
template <class Collective, class Context, any_tensor X>
requires(!std::is_reference_v<X> && !std::is_const_v<X>)
    detail::unchecked_after_t<Collective, X> apply(
        Context& ctx, X&& x, char const* name = "",
        comm::call_site where = comm::call_site::current()) {
  detail::check_collective<Collective, X>();
  comm::require_finite(ctx, x, "collective", name, where);
  if constexpr (detail::accepts<Collective, X>) {
    auto result = comm::collective<Collective>::begin(ctx, std::move(x), name, where).wait();
    x.release();
    return result;
  } else {
    __builtin_unreachable();
  }
}

/// Starts a shift: every rank gets the tile of the rank `distance` further along the axis, the
/// step of a ring schedule. Same layout, rotated content: the caller knows whose tile it holds.
/// The distance is the same on all ranks of the axis; 0 is a local copy.
template <class Axis, class Context, any_tensor X>
auto shift_along(Context& ctx, X const& x, int distance, char const* name = "",
                 comm::call_site where = comm::call_site::current()) {
  detail::check_collective<ring_shift<Axis>, X>();
  comm::require_finite(ctx, x, "ring_shift", name, where);
  return comm::collective<ring_shift<Axis>>::begin(ctx, x, distance, name, where);
}

}  // namespace dtm
