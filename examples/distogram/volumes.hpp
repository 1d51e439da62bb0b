#pragma once
// How many elements a rank sends, mean over ranks: the formulas the report holds the ledger
// against. B = 1.

#include <algorithm>
#include <cstdint>

namespace example {

struct mesh_volumes {
  int cp0, cp1;
  std::int64_t tokens;

  double ranks() const { return double(cp0) * cp1; }
  /// Positions of the pair tile.
  double tile() const { return double(tokens) * double(tokens) / ranks(); }
  /// Channel all-to-all, one direction of triangle multiplication, in tiles.
  double all_to_all() const { return 3 * (1 - 1 / ranks()); }
  /// Cannon on a P x P grid, in tiles.
  double cannon_forward() const { return (cp0 - 1) * (2 + 3. / cp0); }
  double cannon_backward() const { return (cp0 - 1) * (4 + 5. / cp0); }

  /// Triangle attention, in elements of the activations' type and of the accumulation type: both nodes,
  /// forward and backward, rows resident.
  double row_resident(double channels, double heads) const {
    double const exchanges = (1 - 1. / cp0) + (1 - 1. / cp1);
    return tile() * (exchanges * (4 * channels + 1) + 4 * (ranks() - 1) * heads);
  }
  double row_resident_sums(double heads) const { return tile() * 2 * (ranks() - 1) * heads; }
  /// The same by a ring on a P x P grid.
  double ring(double channels, double heads) const {
    double const p = cp0;
    return tile() * 4 * (p - 1) * ((1 + 1 / p) * (channels + 1 + heads) + heads / p);
  }
  double ring_sums(double channels, double heads) const {
    double const p = cp0;
    return tile() * 2 * (p - 1) * ((1 + 1 / p) * (channels + heads) + heads / p);
  }

  /// Tokens common to row block i and column block j.
  double common(int i, int j) const {
    std::int64_t const rows = tokens / cp0, columns = tokens / cp1;
    std::int64_t const begin = std::max(i * rows, j * columns),
                       end = std::min((i + 1) * rows, (j + 1) * columns);
    return double(std::max<std::int64_t>(0, end - begin));
  }
  /// Row form to column form: what a rank needs of its column block and does not hold.
  double transpose_single() const {
    double missing = 0;
    for (int i = 0; i < cp0; ++i)
      for (int j = 0; j < cp1; ++j) missing += double(tokens) / cp1 - common(i, j);
    return missing / ranks();
  }
  /// The mirrored tile, less what a rank holds of it.
  double transpose_pair() const {
    double missing = 0;
    for (int i = 0; i < cp0; ++i)
      for (int j = 0; j < cp1; ++j) missing += tile() - common(i, j) * common(i, j);
    return missing / ranks();
  }
  double all_reduce(double count) const { return 2 * count * (ranks() - 1) / ranks(); }
  double all_reduce_rows(double count) const { return 2 * count * (cp0 - 1) / cp0; }
};

}  // namespace example
