#pragma once
// The signature of one operation: everything that the ranks which take part must agree on. Ranks
// compare a hash of it (check level 2); where the hashes differ they exchange the signatures and
// say in a table who called what.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "call.hpp"

namespace dtm::comm {

/// Plain bytes, zero where unused, so that it can be hashed and sent as it is.
struct signature {
  char operation[32];
  char group[48];
  char element[32];
  char reduction[8];
  char tensor[64];
  char file[160];
  std::uint32_t line;
  std::int32_t root;  // -1: the operation has none
  std::uint64_t sequence;
  std::uint64_t layout;
  std::int64_t count;  // -1: differs between ranks by design
};
static_assert(std::is_trivially_copyable_v<signature> &&
              std::has_unique_object_representations_v<signature>);

namespace detail {

/// Copies the end of a text that is too long: the end of a path tells more than its beginning.
template <std::size_t Size>
void copy_text(char (&to)[Size], std::string_view from) {
  if (from.size() >= Size) from = from.substr(from.size() - Size + 1);
  std::memcpy(to, from.data(), from.size());
}

inline std::string ranks_text(std::vector<int> const& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

}  // namespace detail

inline signature make_signature(call const& who, std::string_view group, std::uint64_t sequence,
                                char const* element, std::int64_t count, char const* reduction = "",
                                int root = -1) {
  signature s;
  std::memset(static_cast<void*>(&s), 0, sizeof s);
  detail::copy_text(s.operation, who.operation);
  detail::copy_text(s.group, group);
  detail::copy_text(s.element, element);
  detail::copy_text(s.reduction, reduction);
  detail::copy_text(s.tensor, who.tensor);
  detail::copy_text(s.file, who.where.file);
  s.line = who.where.line;
  s.root = root;
  s.sequence = sequence;
  s.layout = who.layout;
  s.count = count;
  return s;
}

/// 63 bits, so that its negation is representable: equal everywhere iff max(h) == -max(-h).
inline std::int64_t hash_bytes(void const* data, std::size_t bytes) noexcept {
  auto const* at = static_cast<unsigned char const*>(data);
  std::uint64_t hash = 0x9e3779b97f4a7c15u ^ bytes;
  auto const mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  };
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  std::uint64_t word = 0;
  if (bytes > 0) std::memcpy(&word, at, bytes);
  mix(word);
  return std::int64_t(hash >> 1);
}

inline std::int64_t hash(signature const& s) noexcept {
  return hash_bytes(&s, sizeof s);
}

/// "all_reduce #12 on cp0*cp1 of "dz", 1024 x fp32, sum, called at modules/x.hpp:33"
inline std::string describe(signature const& s) {
  std::string text =
      std::string(s.operation) + " #" + std::to_string(s.sequence) + " on " + s.group;
  if (s.tensor[0]) text += " of \"" + std::string(s.tensor) + "\"";
  if (s.element[0])
    text += ", " + (s.count < 0 ? "uneven" : std::to_string(s.count)) + " x " + s.element;
  if (s.reduction[0]) text += ", " + std::string(s.reduction);
  if (s.root >= 0) text += ", root " + std::to_string(s.root);
  if (s.layout) {
    char number[32];
    std::snprintf(number, sizeof number, ", layout %016llx",
                  static_cast<unsigned long long>(s.layout));
    text += number;
  }
  return text + ", called at " + s.file + ":" + std::to_string(s.line);
}

/// What two signatures disagree about, as a list of words.
inline std::string differences(signature const& a, signature const& b) {
  std::string text;
  auto const note = [&text](bool differ, char const* word) {
    if (differ) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  note(std::strcmp(a.operation, b.operation) != 0, "operation");
  note(a.sequence != b.sequence, "sequence number");
  note(std::strcmp(a.group, b.group) != 0, "mesh axes");
  note(std::strcmp(a.element, b.element) != 0, "element type");
  note(a.count != b.count, "count");
  note(std::strcmp(a.reduction, b.reduction) != 0, "reduction");
  note(a.root != b.root, "root");
  note(std::strcmp(a.tensor, b.tensor) != 0, "tensor");
  note(a.layout != b.layout, "layout");
  note(a.line != b.line || std::strcmp(a.file, b.file) != 0, "call site");
  return text;
}

/// The per-rank table of a mismatch, majority first; `ranks` names the callers in the numbering of
/// the world.
inline std::string mismatch_table(std::span<signature const> all, std::span<int const> ranks) {
  struct row {
    std::size_t first;
    std::vector<int> ranks;
  };
  std::vector<row> rows;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::size_t at = 0;
    while (at < rows.size() && std::memcmp(&all[rows[at].first], &all[i], sizeof(signature)) != 0)
      ++at;
    if (at == rows.size()) rows.push_back({i, {}});
    rows[at].ranks.push_back(ranks[i]);
  }
  std::size_t majority = 0;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].ranks.size() > rows[majority].ranks.size()) majority = i;
  std::swap(rows[0], rows[majority]);
  std::string text = "collective mismatch: the ranks of one group called different operations";
  for (auto const& row : rows) {
    text += "\n  " + detail::ranks_text(row.ranks) + ": " + describe(all[row.first]);
    if (&row != &rows.front())
      text += "\n    differs in: " + differences(all[rows.front().first], all[row.first]);
  }
  return text;
}

}  // namespace dtm::comm
