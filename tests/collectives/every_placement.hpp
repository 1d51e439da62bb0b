#pragma once
// Runs one collective on every layout of a three-dimensional tensor on a mesh of three axes that it
// accepts: all combinations of shard<0>, shard<1>, shard<2>, replicate and partial on dp, cp0 and
// cp1.

#include <cstddef>
#include <utility>

#include "reference.hpp"

namespace reference {

using dtm::detail::pick_t;

template <std::size_t Digit>
using placement_number = pick_t<Digit, dtm::shard<0>, dtm::shard<1>, dtm::shard<2>, dtm::replicate,
                                dtm::partial<dtm::sum>, dtm::partial<dtm::max>>;
constexpr std::size_t placements = 6, layouts = placements * placements * placements;
constexpr std::size_t digit(std::size_t number, int axis) {
  return axis == 2 ? number % placements : digit(number / placements, axis + 1);
}
inline std::string words(std::size_t number) {
  char const* const word[] = {"shard<0>",  "shard<1>",     "shard<2>",
                              "replicate", "partial<sum>", "partial<max>"};
  return std::string("(") + word[digit(number, 0)] + ", " + word[digit(number, 1)] + ", " +
         word[digit(number, 2)] + ")";
}

/// Whether the first `kinds` placements make this layout: a pending sum and a pending maximum do
/// not go together.
constexpr bool exists(std::size_t number, std::size_t kinds) {
  bool seen[placements] = {};
  for (int axis = 0; axis < axes; ++axis) seen[digit(number, axis)] = true;
  for (std::size_t kind = kinds; kind < placements; ++kind)
    if (seen[kind]) return false;
  return !(seen[4] && seen[5]);
}

/// Channels that divide by any product of the axes that is tried.
using even_channels = dtm::shape<dtm::batch, dtm::tokens, dtm::c<72>>;
/// Channels that do not, until an all_to_all has made planes of them.
using odd_channels = dtm::shape<dtm::batch, dtm::tokens, dtm::c<5>>;

// Where an axis shards the channels of `odd_channels` they are planes already.
template <class Shape, std::size_t Number>
using shape_number = std::conditional_t<std::is_same_v<Shape, odd_channels> &&
                                            (digit(Number, 0) == 2 || digit(Number, 1) == 2 ||
                                             digit(Number, 2) == 2),
                                        dtm::replace_dimension_t<Shape, 2, dtm::planes<5>>, Shape>;
template <class Shape, std::size_t Number>
using layout_number =
    dtm::layout<grid, shape_number<Shape, Number>, placement_number<digit(Number, 0)>,
                placement_number<digit(Number, 1)>, placement_number<digit(Number, 2)>>;

/// Extents that any product of the axes divides.
inline auto extents_on(grid_context const& ctx) {
  int const ranks = ctx.where().ranks();
  return dtm::extents{dtm::bind<dtm::batch>(ranks), dtm::bind<dtm::tokens>(2 * ranks)};
}

/// Applies `Test::run<Layout>(ctx, name)` to every layout that `Test::legal<Layout>` allows.
template <class Test, class Shape, std::size_t Number>
int run_one(grid_context& ctx) {
  if constexpr (exists(Number, Test::kinds)) {
    using layout_type = layout_number<Shape, Number>;
    if constexpr (Test::template legal<layout_type>) {
      Test::template run<layout_type>(ctx,
                                      mesh_text(ctx.where().sizes) + ", from " + words(Number));
      return 1;
    }
  }
  return 0;
}
template <class Test, class Shape, std::size_t... Number>
int run_all(grid_context& ctx, std::index_sequence<Number...>) {
  return (0 + ... + run_one<Test, Shape, Number>(ctx));
}

/// How many layouts a collective was tried on; the tests compare it with a count made by hand of
/// the rules.
template <class Test, class Shape>
int on_every_layout(grid_context& ctx) {
  return run_all<Test, Shape>(ctx, std::make_index_sequence<layouts>{});
}

/// The usual test of a collective: what comes out is the same global tensor in the new layout,
/// after a reduction over the axes that `Reduced` names; what went in has not changed.
template <class Collective, unsigned Reduced = 0>
struct keeps_the_content {
  static constexpr std::size_t kinds =
      Reduced != 0 ? 6 : 5;  // elsewhere a maximum is moved like a sum
  template <class Layout>
  static constexpr bool legal = dtm::detail::accepts<Collective, Layout>;

  template <class Layout>
  static void run(grid_context& ctx, std::string const& name) {
    grid_tensor<double, Layout> x(ctx, extents_on(ctx));
    fill(x);
    auto const y = dtm::apply<Collective>(ctx, x, "x");
    static_assert(std::is_same_v<decltype(y), dtm::after_t<Collective, decltype(x)> const>);
    constexpr content what = content_of<Layout>();
    judge(compare(y, what, Reduced), name + ": result");
    judge(compare(x, what), name + ": operand");
  }
};

template <class... Test, class Shape>
int tried(grid_context& ctx, Shape) {
  return (0 + ... + on_every_layout<Test, Shape>(ctx));
}

}  // namespace reference
