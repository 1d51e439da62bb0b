#pragma once
// Compares the tensors that a program needs with those that a file has, in both directions, before
// any is read.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtm/io/safetensors.hpp"

namespace dtm::io {

/// A tensor that a program needs.
struct named_shape {
  std::string name;
  std::vector<std::int64_t> shape;
};

namespace detail {

/// "; missing: 'a', 'b' and 3 more" or nothing.
inline std::string list_text(std::string_view kind, std::vector<std::string> const& items) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, items.size()); ++i)
    text += (i == 0 ? " " : ", ") + items[i];
  if (items.size() > most) text += " and " + std::to_string(items.size() - most) + " more";
  return items.empty() ? "" : "; " + std::string(kind) + ":" + text;
}

}  // namespace detail

/// Throws file_error unless the file has exactly the expected names, each with the expected shape.
/// One message names what is missing, what is extra, which shapes differ and which of these look
/// transposed. Element types are not compared: the reading functions do that.
inline void require_same_names(std::span<named_shape const> expected,
                               safetensors_file const& file) {
  std::vector<std::string> missing, extra, wrong, transposed;
  std::map<std::string_view, bool> known;
  for (named_shape const& wanted : expected) {
    known[wanted.name] = true;
    tensor_entry const* const entry = file.find(wanted.name);
    if (entry == nullptr) {
      missing.push_back(detail::quoted(wanted.name) + " " + shape_text(wanted.shape));
    } else if (entry->shape != wanted.shape) {
      bool const permuted = std::is_permutation(entry->shape.begin(), entry->shape.end(),
                                                wanted.shape.begin(), wanted.shape.end());
      (permuted ? transposed : wrong)
          .push_back(detail::quoted(wanted.name) + " is " + shape_text(entry->shape) +
                     ", needed is " + shape_text(wanted.shape));
    }
  }
  for (tensor_entry const& entry : file.entries())
    if (!known.contains(entry.name))
      extra.push_back(detail::quoted(entry.name) + " " + shape_text(entry.shape));
  if (missing.empty() && extra.empty() && wrong.empty() && transposed.empty()) return;
  detail::refuse_file(
      file.path(), "",
      "names: the file does not fit the program" + detail::list_text("missing", missing) +
          detail::list_text("extra", extra) + detail::list_text("wrong shape", wrong) +
          detail::list_text("transposed", transposed) +
          "; load the file of this model, or rename and transpose its tensors when converting it");
}

}  // namespace dtm::io
