#pragma once
// How the harness sees a sharded module: its inputs and outputs by the contract, forward and
// backward on tuples.
//
//   forward(ctx, inputs...) -> {output, ..., kept}               up to three outputs
//   backward(ctx, kept, upstream..., gradients) -> dx | tuple | nothing
//
// A module without parameters takes no gradients.
//
// The first k inputs are the ones with cotangents, k being what backward returns. An upstream
// gradient is cotangent_t of its output unless the module takes a complete one.

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtm/contract/contract.hpp"
#include "dtm/parameters/gradients.hpp"
#include "dtm/testing/draw.hpp"

namespace dtm::testing {

namespace detail {

template <class List>
struct argument_list;
template <template <class...> class List, class... Name, class... X>
struct argument_list<List<named<Name, X>...>> {
  using tensors = std::tuple<X...>;
  static constexpr int count = sizeof...(X);
  static std::vector<std::string> names() { return {Name::name...}; }
  using integers = std::integer_sequence<bool, !floating_element<typename X::element_type>...>;
  template <class Where, class Bound>
  static tensors make(Where const& ctx, Bound const& bound) {
    return tensors{X(ctx, bound)...};
  }
};

template <class Result>
auto take_apart(Result& result, std::integral_constant<int, 1>) {
  auto& [y, kept] = result;
  return std::pair(std::make_tuple(std::move(y)), std::move(kept));
}
template <class Result>
auto take_apart(Result& result, std::integral_constant<int, 2>) {
  auto& [y, z, kept] = result;
  return std::pair(std::make_tuple(std::move(y), std::move(z)), std::move(kept));
}
template <class Result>
auto take_apart(Result& result, std::integral_constant<int, 3>) {
  auto& [x, y, z, kept] = result;
  return std::pair(std::make_tuple(std::move(x), std::move(y), std::move(z)), std::move(kept));
}

template <class>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;

template <class Module>
inline constexpr bool has_parameters = boost::hana::Struct<Module>::value;

struct no_gradients {};

// The element type of a module's parameters, or of its first input where it has none.
template <class Module>
auto element_of() {
  if constexpr (requires { typename Module::element; })
    return std::type_identity<typename Module::element>{};
  else
    return std::type_identity<typename std::tuple_element_t<
        0, typename argument_list<typename Module::contract::inputs>::tensors>::element_type>{};
}

}  // namespace detail

template <class Module>
struct subject {
  using contract = typename Module::contract;
  using inputs = detail::argument_list<typename contract::inputs>;
  using outputs = detail::argument_list<typename contract::outputs>;
  using mesh_type = typename Module::mesh_type;
  using element = typename decltype(detail::element_of<Module>())::type;
  static constexpr bool has_parameters = detail::has_parameters<Module>;

  template <class Context>
  static auto zero_gradients(Context& ctx, Module const& module) {
    if constexpr (has_parameters)
      return dtm::zero_gradients(ctx, module);
    else
      return detail::no_gradients{};
  }
  template <class Context>
  using gradients_type =
      decltype(zero_gradients(std::declval<Context&>(), std::declval<Module const&>()));

  /// A pair of the tuple of outputs and what was kept.
  template <class Context>
  static auto forward(Context& ctx, Module const& module, typename inputs::tensors const& x) {
    auto result =
        std::apply([&](auto const&... input) { return module.forward(ctx, input...); }, x);
    return detail::take_apart(result, std::integral_constant<int, outputs::count>{});
  }

  template <class Context>
  using kept_type =
      typename decltype(forward(std::declval<Context&>(), std::declval<Module const&>(),
                                std::declval<typename inputs::tensors const&>()))::second_type;

  /// The tuple of upstream gradients that backward takes.
  template <class Context, class... Y>
  static auto upstream_of(std::tuple<Y...>*) {
    constexpr bool takes_cotangents = [] {
      if constexpr (has_parameters)
        return requires(Module const& m, Context& ctx, kept_type<Context>&& kept,
                        gradients_type<Context>& g, cotangent_t<Y> const&... dy) {
          m.backward(ctx, std::move(kept), dy..., g);
        };
      else
        return requires(Module const& m, Context& ctx, kept_type<Context>&& kept,
                        cotangent_t<Y> const&... dy) {
          m.backward(ctx, std::move(kept), dy...);
        };
    }();
    using type =
        std::conditional_t<takes_cotangents, std::tuple<cotangent_t<Y>...>, std::tuple<Y...>>;
    return std::type_identity<type>{};
  }
  template <class Context>
  using upstream = typename decltype(upstream_of<Context>(
      static_cast<typename outputs::tensors*>(nullptr)))::type;

  /// The tuple of input cotangents.
  template <class Context, class Kept, class Gradients>
  static auto backward(Context& ctx, Module const& module, Kept&& kept, upstream<Context> const& dy,
                       Gradients& gradients) {
    auto const call = [&](auto const&... each) {
      if constexpr (has_parameters)
        return module.backward(ctx, std::move(kept), each..., gradients);
      else
        return module.backward(ctx, std::move(kept), each...);
    };
    using result_type = decltype(std::apply(call, dy));
    if constexpr (std::is_void_v<result_type>) {
      std::apply(call, dy);
      return std::tuple<>{};
    } else if constexpr (detail::is_tuple<result_type>) {
      return std::apply([](auto&&... dx) { return std::make_tuple(std::move(dx)...); },
                        std::apply(call, dy));
    } else {
      return std::make_tuple(std::apply(call, dy));
    }
  }
};

/// f(element, index) for each element of a tuple.
template <class Tuple, class F>
void each_of(Tuple&& tuple, F&& f) {
  std::apply(
      [&](auto&&... element) {
        std::size_t index = 0;
        (f(element, index++), ...);
      },
      std::forward<Tuple>(tuple));
}

/// The bytes of a tensor's tile, to be compared bit for bit.
template <any_tensor X>
std::string bytes_of(X const& x) {
  auto const values = on_host(x);
  return std::string(reinterpret_cast<char const*>(values.data()), std::size_t(values.bytes()));
}

/// Bytes of everything in a tuple of tensors.
template <class Tuple>
std::vector<std::string> all_bytes_of(Tuple const& tuple) {
  std::vector<std::string> all;
  each_of(tuple, [&](auto const& x, std::size_t) { all.push_back(bytes_of(x)); });
  return all;
}

template <class Tuple>
std::int64_t size_in_bytes(Tuple const& tuple) {
  std::int64_t bytes = 0;
  each_of(tuple, [&](auto const& x, std::size_t) { bytes += x.bytes(); });
  return bytes;
}

}  // namespace dtm::testing
