#pragma once
// A set of safetensors files with an index, as large models come: `model.safetensors.index.json`
// says which tensor is in which file of the same folder.
//
//   {"metadata": {...}, "weight_map": {"layer.weight": "model-00001-of-00002.safetensors", ...}}
//
// Opening the set opens and checks every file of it. Index and files must agree in both directions.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtm/io/safetensors.hpp"

namespace dtm::io {

class safetensors_set {
 public:
  /// Opens the index and all its files. Throws file_error: the index is malformed, a file of the
  /// set is missing, lies elsewhere, or holds other tensors than the index says.
  static safetensors_set open(std::string path) {
    return safetensors_set(detail::readable_file(std::move(path)));
  }

  /// The files, in the order in which the index first names them.
  std::span<safetensors_file const> files() const { return files_; }

  /// The file that holds a tensor; file_error when none does.
  safetensors_file const& file_of(std::string_view name) const {
    auto const place = file_of_.find(name);
    if (place == file_of_.end())
      detail::refuse_file(path_, detail::tensor_text(name), "names: not in the index");
    return files_[place->second];
  }

 private:
  explicit safetensors_set(detail::readable_file index) : path_(index.path()) {
    if (index.size() > limits::header_bytes)
      detail::refuse_file(path_, "",
                          "index length: " + std::to_string(index.size()) + " bytes, at most " +
                              std::to_string(limits::header_bytes) + " are read");
    auto const length = static_cast<std::size_t>(index.size());
    auto const text = std::make_unique_for_overwrite<char[]>(length);
    index.read(0, std::as_writable_bytes(std::span(text.get(), length)), "index");
    parse({text.get(), length});
    for (safetensors_file const& file : files_)
      for (tensor_entry const& entry : file.entries())
        if (auto const place = file_of_.find(entry.name);
            place == file_of_.end() || &files_[place->second] != &file)
          detail::refuse_file(path_, detail::tensor_text(entry.name),
                              "index: not assigned to " + detail::quoted(file.path()) +
                                  ", which holds it; index and files are of different sets");
  }

  void parse(std::span<char> text) {
    detail::json_scanner scan(path_, "index", text, 0);
    scan.expect('{', "index syntax");
    bool map_seen = false, metadata_seen = false;
    if (!scan.accept('}')) do {
        char const* const place = scan.place();
        std::string_view const key = scan.string("index syntax: a key");
        scan.expect(':', "index syntax: after a key");
        bool const is_map = key == "weight_map";
        if (!is_map && key != "metadata")
          scan.fail_at(place, "index: unknown field " + detail::quoted(key));
        if (std::exchange(is_map ? map_seen : metadata_seen, true))
          scan.fail_at(place, "duplicate: field " + detail::quoted(key) + " occurs twice");
        is_map ? parse_map(scan) : scan.skip_value(16);
      } while (scan.another('}', "index syntax: after a field"));
    scan.finish();
    if (!map_seen)
      scan.fail("index: weight_map is missing; this is not an index of safetensors files");
  }

  void parse_map(detail::json_scanner& scan) {
    std::map<std::string_view, std::size_t> number_of;
    scan.expect('{', "index: weight_map");
    if (scan.accept('}')) return;
    do {
      char const* const place = scan.place();
      std::string_view const name = scan.string("index syntax: the name of a tensor");
      if (std::string const fault = detail::fault_of_name(name); !fault.empty())
        scan.fail_at(place, "name: the tensor name " + detail::quoted(name) + " " + fault);
      scan.expect(':', "index syntax: after the name of a tensor");
      char const* const file_place = scan.place();
      std::string_view const file = scan.string("index: the name of a file");
      auto const [known, added] = number_of.try_emplace(file, files_.size());
      if (added) open_file(scan, file, file_place);
      if (!file_of_.try_emplace(std::string(name), known->second).second)
        scan.fail_at(place, "duplicate: " + detail::tensor_text(name) + " occurs twice");
      if (!files_[known->second].contains(name))
        scan.fail_at(place, "index: " + detail::tensor_text(name) + " is not in " +
                                detail::quoted(file) + "; index and files are of different sets");
    } while (scan.another('}', "index syntax: after a file"));
  }

  void open_file(detail::json_scanner& scan, std::string_view file, char const* place) {
    if (files_.size() == most_files)
      scan.fail_at(place, "index: more than " + std::to_string(most_files) + " files");
    if (std::string const fault = detail::fault_of_name(file);
        !fault.empty() || file == "." || file == "..")
      scan.fail_at(place, "index: the file " + detail::quoted(file) +
                              " is refused; files of a set lie in the folder of the index and are "
                              "named without a folder");
    auto const slash = path_.rfind('/');
    std::string const folder = slash == std::string::npos ? "" : path_.substr(0, slash + 1);
    std::string const path = folder + std::string(file);
    if (::access(path.c_str(), F_OK) != 0)
      scan.fail_at(place, "index: the file " + detail::quoted(file) +
                              " of the set is missing; copy all its files");
    files_.push_back(safetensors_file::open(path));
  }

  static constexpr std::size_t most_files = 500;  // each stays open

  std::string path_;
  std::vector<safetensors_file> files_;
  std::map<std::string, std::size_t, std::less<>> file_of_;
};

}  // namespace dtm::io
