#pragma once
// What the programs of this folder are made of. Every case is one mistake; case 0 of its file is the same program
// without it. A regex names template arguments, never words that only stand in the library's source.

#include "dtm/contract/diagnose.hpp"
#include "dtm/contract/place_rules.hpp"
#include "dtm/contract/transitions.hpp"

using namespace dtm;

using grid = mesh<dp, cp0, cp1>;
using line = mesh<cp0>;

struct tp : axis<"tp"> {};

using pair_shape = shape<batch, tokens, tokens, c<8>>;
using pair_layout = layout<grid, pair_shape, shard<0>, shard<1>, shard<2>>;
template <class... Placement>
using pair_placed = tensor<float, layout<grid, pair_shape, Placement...>>;

/// A tensor on one axis, for cases where only one placement matters.
template <class Shape, class Placement>
using on_line = tensor<float, layout<line, Shape, Placement>>;
