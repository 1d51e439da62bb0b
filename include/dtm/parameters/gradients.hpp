#pragma once
// Gradient trees (law L6). In backward every parameter gradient is partial on every mesh axis and
// is accumulated in at least fp32. synchronise sums all of them at the end, in few large buckets,
// and is the only thing that yields the complete gradients that an optimiser accepts. Parameter
// gradients add, activation cotangents assign.
//
//   auto pending = zero_gradients(ctx, model);
//   ... model.backward(ctx, ..., pending);
//   auto complete = synchronise(ctx, std::move(pending));

#include <algorithm>

#include "dtm/comm/transition.hpp"
#include "dtm/parameters/walk.hpp"

namespace dtm {

template <class Module>
void set_to_zero(Module& module) {
  each_parameter(module, [](std::string const&, auto& parameter) {
    parameter.where().storage->fill_bytes(parameter.data(), 0, std::size_t(parameter.bytes()));
  });
}

namespace detail {

template <class Module>
struct not_pending_gradients {
  static_assert(false_for<Module>,
                "dtm gradients: synchronise takes the pending gradients of a module, once; Module "
                "stands in the line that names not_pending_gradients");
};

template <class Space>
struct is_pending : std::false_type {};
template <class Space>
struct is_pending<pending_gradients<Space>> : std::true_type {};

}  // namespace detail

/// One bucket holds at most this many elements.
inline constexpr std::int64_t gradient_bucket_elements = std::int64_t{1} << 22;

/// A tree of another role with the same depth as `source`. Modules whose depth is a run-time value
/// say it in configuration().
template <class Target, class Context, class Source>
Target make_like(Context& ctx, Source const& source) {
  if constexpr (requires { source.configuration(); })
    return Target(ctx, source.configuration());
  else
    return Target(ctx);
}

/// Pending gradients of a module, all zero.
template <class Context, class Module>
gradients_of_t<Module> zero_gradients(Context& ctx, Module const& module) {
  auto gradients = make_like<gradients_of_t<Module>>(ctx, module);
  set_to_zero(gradients);
  return gradients;
}

namespace detail {

template <class Context, class Pending, class Complete>
void sum_in_buckets(Context& ctx, Pending& pending, Complete& complete,
                    std::int64_t bucket_elements, comm::call_site where) {
  using T = typename Pending::template parameter_element<false>;
  auto const from = named_parameters(pending);
  auto const to = named_parameters(complete);
  std::int64_t total = 0;
  for (auto const& view : from) total += view.count;
  std::int64_t const capacity = std::min(total, bucket_elements);
  scratch<T> bucket(ctx.memory(), capacity);
  std::size_t parameter = 0;
  std::int64_t offset = 0;  // inside the parameter: a large one may span buckets
  while (parameter < from.size()) {
    std::size_t const first = parameter;
    std::int64_t const first_offset = offset;
    auto each_piece = [&](auto visit) {
      std::int64_t filled = 0;
      parameter = first;
      offset = first_offset;
      while (parameter < from.size() && filled < capacity) {
        std::int64_t const piece = std::min(from[parameter].count - offset, capacity - filled);
        visit(parameter, offset, filled, piece);
        filled += piece;
        offset += piece;
        if (offset == from[parameter].count) {
          ++parameter;
          offset = 0;
        }
      }
      return filled;
    };
    std::int64_t const filled =
        each_piece([&](std::size_t p, std::int64_t at, std::int64_t into, std::int64_t piece) {
          ctx.memory().copy_within(bucket.data() + into, from[p].data + at,
                                   std::size_t(piece) * sizeof(T));
        });
    if (filled == 0) break;
    ctx.along_all()
        .all_reduce(bucket.data(), bucket.data(), filled, comm::reduction::sum,
                    comm::call{"all_reduce", "gradients", std::uint64_t(filled), where})
        .wait();
    each_piece([&](std::size_t p, std::int64_t at, std::int64_t into, std::int64_t piece) {
      ctx.memory().copy_within(to[p].data + at, bucket.data() + into,
                               std::size_t(piece) * sizeof(T));
    });
  }
}

template <class Pending>
inline constexpr bool pending_tree = is_pending<typename Pending::space_type>::value;

// What synchronise yields; of anything else than pending gradients the same again, its body says
// what is wrong.
template <class Pending, bool IsPending = pending_tree<Pending>>
struct synchronised {
  using type = Pending;
};
template <class Pending>
struct synchronised<Pending, true> {
  using type = typename Pending::template in<complete_gradients<typename Pending::space_type::of>>;
};

}  // namespace detail

/// Sums pending gradients over the whole mesh, in parameter order, one all_reduce a bucket.
/// Consumes them.
template <class Context, class Pending>
typename detail::synchronised<std::remove_cvref_t<Pending>>::type synchronise(
    Context& ctx, Pending&& pending, std::int64_t bucket_elements = gradient_bucket_elements,
    comm::call_site where = comm::call_site::current()) {
  static_assert(
      !std::is_lvalue_reference_v<Pending>,
      "dtm gradients: synchronise consumes the pending gradients; pass std::move(gradients)");
  using given = std::remove_cvref_t<Pending>;
  (void)sizeof(detail::unless<detail::pending_tree<given>, detail::not_pending_gradients<given>>);
  using complete_type = typename detail::synchronised<given>::type;
  auto complete = make_like<complete_type>(ctx, pending);
  detail::sum_in_buckets(ctx, pending, complete, bucket_elements, where);
  return complete;
}

}  // namespace dtm
