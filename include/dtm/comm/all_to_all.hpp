#pragma once
// all_to_all<move<axis, e>...>: shard<d> -> shard<e> on every named axis, in one exchange over
// their joint group. Counts between pairs of ranks may be uneven (planes<C>). Volume: (1 - 1/P) of
// the tile, mean over ranks.
//
// transpose<a, b>: the placements of two axes change places; the same machinery. With one axis
// replicated, the replica that sends is the receiver itself where it holds the block, otherwise
// the one whose coordinate is the receiver's, modulo the size of the axis: no block is sent twice
// to one rank. With one axis partial it is the adjoint: contributions go back the same way and are
// added at the owner in rank order.
//
// Where the group has one rank nothing moves: the result is a copy of the operand, or the operand's
// own memory where that is not needed any more.

#include "dtm/comm/transition.hpp"

namespace dtm::comm {

namespace detail {

template <int Rank, bool Add>
struct unpack_exchange {
  exchange_plan<Rank> plan;
  global_extents<Rank> global;
  bool in_place = false;  // the result is there without a message

  template <class Result, class Context>
  Result make(Context& ctx) const {
    return Result(ctx, global);
  }
  template <class Context, class Result, class T>
  void operator()(Context& ctx, Result& result, T const* received) const {
    using copy = box_copy<typename Result::device_type>;
    if (in_place) return;
    if constexpr (Add)
      result.where().storage->fill_bytes(result.data(), 0, std::size_t(result.bytes()));
    for (auto const& part : plan.receive) {
      if constexpr (Add)
        copy::unpack_add(ctx, received, result.data(), result.tile(), part);
      else
        copy::unpack(ctx, received, result.data(), result.tile(), part);
      received += part.size();
    }
  }
};

// One copy: each rank takes its boxes out of the tiles of the others. What is given stays until then.
template <bool Add, class Result, class Context, class X, class Group, int Rank>
auto begin_reading(Context& ctx, X const& x, Group& ranks, exchange_plan<Rank> plan, unsigned mask,
                   call const& what) {
  using T = typename Result::element_type;
  Result result(ctx, x.global());
  if constexpr (Add) ctx.memory().fill_bytes(result.data(), 0, std::size_t(result.bytes()));
  box_reader<T, Rank, Add> reader{result.data(), result.tile(), false, {}};
  peers<typename X::mesh_type> const group{ctx.where(), mask};
  for (int peer = 0; peer < group.count(); ++peer) {
    int there[X::mesh_type::rank];
    group.coordinates(peer, there);
    reader.of_peers.push_back(
        {tile_of<typename X::layout_type>(x.global(), ctx.where().sizes, there),
         plan.receive[std::size_t(peer)]});
  }
  auto messages = ranks.all_to_all_in_place(x.data(), plan.send_counts, plan.receive_counts, what,
                                            Add, std::move(reader));
  return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                   unpack_exchange<Rank, Add>{std::move(plan), x.global(), true});
}

// X is a tensor const&, or a tensor that is not needed any more.
template <bool Add, class Result, class Context, class X, class Group, int Rank>
auto begin_exchange(Context& ctx, X&& x, Group& ranks, exchange_plan<Rank> plan, unsigned mask,
                    call const& what) {
  using T = typename Result::element_type;
  using finish = unpack_exchange<Rank, Add>;
  constexpr bool is_given = !std::is_reference_v<X>;
  auto const global = x.global();
  auto const start = [&](T const* sent, T* received) {
    return ranks.all_to_all(sent, std::span<std::int64_t const>(plan.send_counts), received,
                            std::span<std::int64_t const>(plan.receive_counts), what);
  };
  if (ranks.size() == 1) {
    auto source = [&] {
      if constexpr (is_given)
        return std::move(x);
      else
        return x.clone();
    }();
    auto result = std::move(source).template relabel<Result>(global);
    auto messages = start(result.data(), result.data());
    return in_flight(ctx, std::move(result), scratch<T>(), scratch<T>(), std::move(messages),
                     finish{std::move(plan), global, true});
  }
  if constexpr (requires { require_tiles<Result>(ranks); })
    if (ranks.shares_memory())
      return begin_reading<Add, Result>(ctx, x, ranks, std::move(plan), mask, what);
  scratch<T> sent(ctx.memory(), plan.sent);
  T* end = sent.data();
  for (auto const& part : plan.send) {
    box_copy<typename Result::device_type>::pack(ctx, x.data(), x.tile(), part, end);
    end += part.size();
  }
  if constexpr (is_given) x.release();
  scratch<T> received(ctx.memory(), plan.received);
  auto messages = start(sent.data(), received.data());
  return in_flight<Context, Result, decltype(messages), finish>(
      ctx, std::nullopt, std::move(sent), std::move(received), std::move(messages),
      finish{std::move(plan), global});
}

}  // namespace detail

template <class... Move>
struct collective<all_to_all<Move...>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X&& x, char const* name, call_site where) {
    using operand_type = std::remove_cvref_t<X>;
    using result_type = dtm::detail::unchecked_after_t<all_to_all<Move...>, operand_type>;
    using source = typename operand_type::layout_type;
    using target = typename result_type::layout_type;
    using mesh_type = typename operand_type::mesh_type;
    constexpr unsigned mask = dtm::detail::axis_mask<mesh_type, typename Move::axis...>;
    auto const target_extents = checked_extents<target>(x.global(), ctx.where().sizes);
    auto plan = plan_exchange<source, target>(ctx.where(), mask, x.global(), target_extents,
                                              [](int const*, int const*) { return true; });
    call const what{"all_to_all", name, layout_signature<operand_type, result_type>(x), where};
    return detail::begin_exchange<false, result_type>(ctx, std::forward<X>(x),
                                                      ctx.template along<typename Move::axis...>(),
                                                      std::move(plan), mask, what);
  }
};

namespace detail {

// Shard<d> on `from`, replicated on `other`: which replica serves whom.
template <int From, int Other>
struct serving_replica {
  int other_size;
  bool operator()(int const* sender, int const* receiver) const {
    int const chosen =
        sender[From] == receiver[From] ? receiver[Other] : receiver[From] % other_size;
    return sender[Other] == chosen;
  }
};

}  // namespace detail

template <class A, class B>
struct collective<transpose<A, B>> {
  template <class Context, class X>
  static auto begin(Context& ctx, X&& x, char const* name, call_site where) {
    using operand_type = std::remove_cvref_t<X>;
    using result_type = dtm::detail::unchecked_after_t<transpose<A, B>, operand_type>;
    using source = typename operand_type::layout_type;
    using target = typename result_type::layout_type;
    using mesh_type = typename operand_type::mesh_type;
    using on_a = typename source::template placement<A>;
    using on_b = typename source::template placement<B>;
    constexpr int a = mesh_type::template index<A>(), b = mesh_type::template index<B>();
    constexpr unsigned mask = dtm::detail::axis_mask<mesh_type, A, B>;
    constexpr bool adjoint = dtm::detail::is_partial<on_a> || dtm::detail::is_partial<on_b>;
    auto const& sizes = ctx.where().sizes;
    auto& ranks = ctx.template along<A, B>();
    call const what{"transpose", name, layout_signature<operand_type, result_type>(x), where};

    if constexpr (dtm::detail::is_shard<on_a> && dtm::detail::is_shard<on_b>) {
      auto plan = plan_exchange<source, target>(ctx.where(), mask, x.global(), x.global(),
                                                [](int const*, int const*) { return true; });
      return detail::begin_exchange<false, result_type>(ctx, std::forward<X>(x), ranks,
                                                        std::move(plan), mask, what);
    } else if constexpr (!adjoint) {
      constexpr int from = dtm::detail::is_shard<on_a> ? a : b,
                    other = dtm::detail::is_shard<on_a> ? b : a;
      auto plan = plan_exchange<source, target>(ctx.where(), mask, x.global(), x.global(),
                                                detail::serving_replica<from, other>{sizes[other]});
      return detail::begin_exchange<false, result_type>(ctx, std::forward<X>(x), ranks,
                                                        std::move(plan), mask, what);
    } else {
      // the plan of the forward direction, target -> source, run backwards
      constexpr int from = dtm::detail::is_shard<on_a> ? b : a,
                    other = dtm::detail::is_shard<on_a> ? a : b;
      auto plan = plan_exchange<target, source>(ctx.where(), mask, x.global(), x.global(),
                                                detail::serving_replica<from, other>{sizes[other]});
      std::swap(plan.send, plan.receive);
      std::swap(plan.send_counts, plan.receive_counts);
      std::swap(plan.sent, plan.received);
      return detail::begin_exchange<true, result_type>(ctx, std::forward<X>(x), ranks,
                                                       std::move(plan), mask, what);
    }
  }
};

}  // namespace dtm::comm
