// Prints the parts of docs/ that are made from types:
//
//   docs_generate module_map | collectives | picture
//
// tests/docs/sync.sh puts the output into the pages, or says that they are stale.

#include "dtm/contract/describe.hpp"
#include "dtm/dtm.hpp"
#include "dtm/modules/distogram_module.hpp"
#include "dtm/modules/initial_pair.hpp"
#include "dtm/modules/losses/distogram_loss.hpp"
#include "dtm/modules/relative_position_encoder.hpp"
#include "dtm/modules/transition.hpp"
#include "dtm/modules/triangle_attention.hpp"
#include "dtm/modules/triangle_multiplication.hpp"

#include <cstdio>
#include <cstring>
#include <string>

namespace {

using namespace dtm;
using grid = mesh<dp, cp0, cp1>;

// ---- module map ----
using map_space = space<float, grid>;

std::string megabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", double(bytes) / 1048576);
  return text;
}

/// Bytes kept for backward by the rank at (0, 0, 0), one sample and one conformer.
template <class Module>
std::int64_t kept(int cp0, int cp1) {
  return saved_bytes<typename Module::contract::saved>::at(
      site<grid>{{1, cp0, cp1}, {0, 0, 0}},
      extents{bind<batch>(1), bind<tokens>(384), bind<conformers>(1)});
}

/// Common layouts get a word; docs/module_map.md explains them.
std::string shortened(std::string text) {
  auto const replace = [&text](std::string const& from, std::string const& to) {
    for (std::size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  replace(" fp32 ", " ");
  replace(" dp:S0 cp0:S1 cp1:S2", " pair");
  replace(" dp:S0 cp1:S1 cp0:S2", " pair, transposed");
  replace(" dp:S0 cp0:S1 cp1:R", " row");
  replace(" dp:S0 cp0:R cp1:S1", " column");
  replace(" dp:R cp0:R cp1:R", " everywhere");
  return text;
}

template <class Module>
void print_module(std::string const& variant = "") {
  auto const row = describe_contract<Module>();
  std::printf("| `%s`%s | %s | %s | %s | %s | %s | %s | %s / %s / %s |\n", row.module.c_str(),
              variant.empty() ? "" : ("<br>" + variant).c_str(), shortened(row.inputs).c_str(),
              shortened(row.outputs).c_str(), row.forward.c_str(), row.backward.c_str(),
              shortened(row.saved).c_str(), row.budget.c_str(),
              megabytes(kept<Module>(1, 1)).c_str(), megabytes(kept<Module>(2, 2)).c_str(),
              megabytes(kept<Module>(4, 4)).c_str());
}

void print_module_map() {
  constexpr std::int64_t C = 128;
  std::printf(
      "| module | inputs | outputs | forward | backward | saved | budget per position "
      "| MiB kept, N = 384, 1x1 / 2x2 / 4x4 |\n|---|---|---|---|---|---|---|---|\n");
  print_module<initial_pair<map_space, 384, C>>();
  print_module<relative_position_encoder<map_space, C>>();
  print_module<triangle_multiplication<outgoing, map_space, C>>(channel_all_to_all::name);
  print_module<triangle_multiplication<outgoing, map_space, C, cannon>>(cannon::name);
  print_module<triangle_multiplication<incoming, map_space, C>>(channel_all_to_all::name);
  print_module<triangle_multiplication<incoming, map_space, C, cannon>>(cannon::name);
  print_module<triangle_attention<starting, map_space, C, 4, 32>>(row_resident::name);
  print_module<triangle_attention<starting, map_space, C, 4, 32, ring>>(ring::name);
  print_module<triangle_attention<ending, map_space, C, 4, 32>>(row_resident::name);
  print_module<triangle_attention<ending, map_space, C, 4, 32, ring>>(ring::name);
  print_module<transition<map_space, C, 4 * C>>();
  print_module<distogram_module<map_space, C>>();
  print_module<distogram_loss<map_space>>();
}

// ---- collectives ----
// Two axes, so that transpose has something to do; the first is the operand's.
using cube = shape<tokens, atoms, c<8>>;
template <class Collective, class Placement, class Other = replicate>
std::string after_text() {
  using before = layout<mesh<cp0, cp1>, cube, Placement, Other>;
  if constexpr (detail::accepts<Collective, before>) {
    using after = after_t<Collective, before>;
    std::string text = detail::placement_text<typename after::template placement<cp0>>();
    if (!std::is_same_v<typename after::template placement<cp1>, Other>)
      text += ", " + detail::placement_text<typename after::template placement<cp1>>();
    if (!std::is_same_v<typename after::shape_type, cube>) text += " of planes";
    return text;
  } else {
    return "-";
  }
}
template <class Collective, class Other = replicate>
void print_collective(char const* name, char const* sent, char const* backward) {
  std::printf("| `%s` | %s | %s | %s | %s | %s | %s | %s |\n", name,
              after_text<Collective, shard<0>, Other>().c_str(),
              after_text<Collective, shard<1>, Other>().c_str(),
              after_text<Collective, replicate, Other>().c_str(),
              after_text<Collective, partial<sum>, Other>().c_str(),
              after_text<Collective, partial<dtm::max>, Other>().c_str(), sent, backward);
}

// tests/collectives checks what is sent (ledger_test.cpp) and what goes back (adjoint_test.cpp).
void print_collectives() {
  std::printf(
      "| collective | of S0 | of S1 | of R | of P(sum) | of P(max) | elements sent per rank | of "
      "the cotangent |\n"
      "|---|---|---|---|---|---|---|---|\n");
  print_collective<all_reduce<cp0>>("all_reduce<cp0>", "2 u (P-1)/P", "all_reduce");
  print_collective<reduce_scatter<cp0, 0>>("reduce_scatter<cp0, 0>", "u (P-1)/P", "all_gather");
  print_collective<all_gather<cp0>>("all_gather<cp0>", "u (P-1)", "reduce_scatter");
  print_collective<all_to_all<move<cp0, 1>>>("all_to_all<move<cp0, 1>>", "u (P-1)/P",
                                             "all_to_all, back");
  print_collective<all_to_all<move<cp0, 2>>>("all_to_all<move<cp0, 2>>", "u (P-1)/P, mean",
                                             "all_to_all, back");
  print_collective<all_slice<cp0, 0>>("all_slice<cp0, 0>", "0", "");
  print_collective<transpose<cp0, cp1>>("transpose<cp0, cp1>, cp1: R", "what the other lacks",
                                        "transpose");
  print_collective<transpose<cp0, cp1>, shard<2>>("transpose<cp0, cp1>, cp1: S2",
                                                  "u off the diagonal", "transpose");
  print_collective<ring_shift<cp0>>("ring_shift<cp0>", "u", "ring_shift, back");
  print_collective<broadcast<cp0>>("broadcast<cp0>", "u (P-1)/P, mean", "");
}

// ---- who holds what ----
template <class Layout, class Each>
void each_rank(global_extents<Layout::rank> const& global, Each each) {
  int const sizes[] = {1, 2, 2};
  for (int rank = 0; rank < 4; ++rank) {
    int const coordinates[] = {0, rank / 2, rank % 2};
    each(rank, tile_of<Layout>(global, sizes, coordinates));
  }
}

std::string range(std::int64_t begin, std::int64_t end) {
  return std::to_string(begin) + "-" + std::to_string(end - 1);
}

template <class Layout>
void print_pair(char const* title) {
  std::printf("%-34s %s\n", title, detail::layout_text(static_cast<Layout*>(nullptr)).c_str());
  std::string held[2][2], rows[2], columns[2];
  each_rank<Layout>({{1, 8, 8, 128}}, [&](int rank, auto const& tile) {
    std::size_t const i = std::size_t(tile.begin[1] / 4), j = std::size_t(tile.begin[2] / 4);
    rows[i] = "i " + range(tile.begin[1], tile.end[1]);
    columns[j] = "j " + range(tile.begin[2], tile.end[2]);
    held[i][j] = "rank " + std::to_string(rank);
  });
  std::printf("%9s %-9s %-9s\n", "", columns[0].c_str(), columns[1].c_str());
  for (std::size_t i = 0; i < 2; ++i)
    std::printf("  %-7s %-9s %-9s\n", rows[i].c_str(), held[i][0].c_str(), held[i][1].c_str());
}

template <class Layout>
void print_tokens(char const* title) {
  std::printf("\n%-34s %s\n", title, detail::layout_text(static_cast<Layout*>(nullptr)).c_str());
  std::string text[8];
  each_rank<Layout>({{1, 8, 128}}, [&](int rank, auto const& tile) {
    auto& block = text[tile.begin[1]];
    if (block.empty())
      block = "  tokens " + range(tile.begin[1], tile.end[1]) + "  rank " + std::to_string(rank);
    else
      block += ", " + std::to_string(rank);
  });
  for (auto const& block : text)
    if (!block.empty()) std::printf("%s\n", block.c_str());
}

template <class... Placement>
using single_on_grid = layout<grid, shape<batch, tokens, c<128>>, Placement...>;

void print_picture() {
  std::printf("rank = cp0 * 2 + cp1, N = 8\n\n");
  print_pair<pair_tensor<map_space, c<128>>::layout_type>("pair_tensor");
  print_tokens<single_tensor<map_space, c<128>>::layout_type>("single_tensor (row form)");
  print_tokens<single_column_tensor<map_space, c<128>>::layout_type>("single_column_tensor");
  print_tokens<single_on_grid<shard<0>, shard<1>, shard<1>>>("two axes on one dimension");
}

}  // namespace

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "module_map") == 0)
    print_module_map();
  else if (std::strcmp(what, "collectives") == 0)
    print_collectives();
  else if (std::strcmp(what, "picture") == 0)
    print_picture();
  else
    return std::fprintf(stderr, "usage: generate module_map | collectives | picture\n"), 2;
}
