#pragma once
// The header of a safetensors file: what it may say, and every check on it.
//
//   8 bytes   length n of the header, little-endian
//   n bytes   JSON object: "__metadata__" (strings by name) and, by tensor name, dtype, shape,
//   data_offsets the rest  data; the ranges of the tensors cover it without holes or overlaps
//
// A file is refused unless all of it is consistent; nothing is repaired and nothing is guessed.
// Stricter than the format asks: tensor names have no control characters and no slashes (they are
// dotted names, and become names of files and messages), unknown fields are refused, and the
// numbers of tensors, metadata entries and dimensions are bounded, which bounds the memory that any
// header can demand by the file's size + 64 MiB.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dtm/io/dtype.hpp"
#include "dtm/io/json_scanner.hpp"
#include "dtm/io/readable_file.hpp"

namespace dtm::io {

/// One tensor of a file. `name` is a view into the file object that gave the entry.
struct tensor_entry {
  std::string_view name;
  dtype type = dtype::f64;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // bytes, counted from the start of the data

  std::int64_t elements() const { return (end - begin) / size_of(type); }
};

using metadata_list = std::vector<std::pair<std::string_view, std::string_view>>;

namespace limits {
inline constexpr std::int64_t header_bytes =
    100'000'000;  // as the reference implementation of the format
inline constexpr std::size_t tensors = 100'000;
inline constexpr std::size_t metadata_entries = 100'000;
inline constexpr std::size_t dimensions = 32;
inline constexpr std::size_t name_bytes = 1024;
}  // namespace limits

/// `[2, 3]` for messages.
inline std::string shape_text(std::span<std::int64_t const> shape) {
  std::string text = "[";
  for (std::int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

namespace detail {

inline constexpr std::string_view metadata_key = "__metadata__";

/// What is wrong with a tensor's name, or an empty text.
inline std::string fault_of_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > limits::name_bytes)
    return "has " + std::to_string(name.size()) + " bytes, at most " +
           std::to_string(limits::name_bytes) + " are read";
  for (char c : name) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte == 0) return "contains a NUL byte";
    if (byte < 0x20 || byte == 0x7f) return "contains a control character";
    if (c == '/' || c == '\\') return "contains a slash; names are dotted, rename the tensor";
  }
  if (first_invalid_utf8(name) >= 0) return "is not UTF-8";
  return "";
}

/// Bytes of a tensor, or nothing when the number does not fit 63 bits. An extent of 0 hides no
/// overflow of the others.
inline std::optional<std::int64_t> bytes_of(std::span<std::int64_t const> shape, dtype type) {
  std::int64_t bytes = size_of(type);
  bool empty = false;
  for (std::int64_t extent : shape) {
    if (extent == 0)
      empty = true;
    else if (__builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  }
  return empty ? 0 : bytes;
}

struct safetensors_header {
  std::unique_ptr<char[]> text;  // names and metadata are views into it
  std::int64_t data_begin = 0;   // byte of the file
  metadata_list metadata;        // in the order of the header
  std::vector<tensor_entry> entries;
  std::vector<std::uint32_t> by_name;  // entries sorted by name
};

class header_parser {
 public:
  header_parser(readable_file const& file, safetensors_header& header, std::int64_t length)
      : file_(file),
        header_(header),
        scan_(file.path(), "header", {header.text.get(), static_cast<std::size_t>(length)}, 8) {}

  void parse() {
    scan_.expect('{', "header syntax");
    bool metadata_seen = false;
    if (!scan_.accept('}')) do {
        char const* const place = scan_.place();
        std::string_view const key = scan_.string("header syntax: the name of a tensor");
        if (key == metadata_key) {
          if (std::exchange(metadata_seen, true))
            scan_.fail_at(place, "duplicate: '__metadata__' occurs twice");
          parse_metadata();
        } else {
          parse_tensor(key, place);
        }
      } while (scan_.another('}', "header syntax: after a tensor"));
    scan_.finish();
    check_names();
    check_layout();
  }

 private:
  void parse_metadata() {
    scan_.expect(':', "header syntax: after '__metadata__'");
    scan_.set_subject("'__metadata__'");
    scan_.expect('{', "header: metadata");
    if (!scan_.accept('}')) do {
        if (header_.metadata.size() == limits::metadata_entries)
          scan_.fail("header: more than " + std::to_string(limits::metadata_entries) +
                     " metadata entries");
        std::string_view const key = scan_.string("header: metadata: a name");
        scan_.expect(':', "header syntax: after a name in metadata");
        header_.metadata.emplace_back(key, scan_.string("header: metadata: a value"));
      } while (scan_.another('}', "header syntax: after a value in metadata"));
    scan_.set_subject("");
  }

  void parse_tensor(std::string_view name, char const* place) {
    if (std::string const fault = fault_of_name(name); !fault.empty())
      scan_.fail_at(place, "name: the tensor name " + quoted(name) + " " + fault);
    if (header_.entries.size() == limits::tensors)
      scan_.fail_at(place, "header: more than " + std::to_string(limits::tensors) +
                               " tensors; split the file");
    subject_ = tensor_text(name);
    scan_.set_subject(subject_);
    tensor_entry entry;
    entry.name = name;
    scan_.expect(':', "header syntax: after the name of a tensor");
    scan_.expect('{', "header: a tensor");
    bool type_seen = false, shape_seen = false, offsets_seen = false;
    if (!scan_.accept('}')) do {
        char const* const field_place = scan_.place();
        std::string_view const field = scan_.string("header syntax: a field of a tensor");
        bool* const seen = field == "dtype"          ? &type_seen
                           : field == "shape"        ? &shape_seen
                           : field == "data_offsets" ? &offsets_seen
                                                     : nullptr;
        if (seen == nullptr)
          scan_.fail_at(field_place, "header: unknown field " + quoted(field) +
                                         "; known are dtype, shape, data_offsets");
        if (std::exchange(*seen, true))
          scan_.fail_at(field_place, "duplicate: field " + quoted(field) + " occurs twice");
        scan_.expect(':', "header syntax: after the name of a field");
        if (seen == &type_seen) entry.type = parse_dtype();
        if (seen == &shape_seen) parse_shape(entry.shape);
        if (seen == &offsets_seen) parse_offsets(entry);
      } while (scan_.another('}', "header syntax: after a field of a tensor"));
    if (!type_seen) scan_.fail("dtype: missing; every tensor has a dtype");
    if (!shape_seen) scan_.fail("shape: missing; every tensor has a shape, [] for a single number");
    if (!offsets_seen) scan_.fail("offsets: data_offsets is missing; every tensor has them");
    scan_.set_subject("");
    header_.entries.push_back(std::move(entry));
  }

  dtype parse_dtype() {
    char const* const place = scan_.place();
    std::string_view const name = scan_.string("dtype: the type");
    if (auto const type = dtype_named(name)) return *type;
    bool const known = std::find(refused_dtype_names.begin(), refused_dtype_names.end(), name) !=
                       refused_dtype_names.end();
    scan_.fail_at(place, "dtype: " + quoted(name) +
                             (known ? " is not supported; convert the tensor to one of "
                                    : " is unknown; known are ") +
                             list_of_dtypes());
  }

  void parse_shape(std::vector<std::int64_t>& shape) {
    std::array<std::int64_t, limits::dimensions> extents{};
    std::size_t count = 0;
    scan_.expect('[', "shape: an array");
    if (!scan_.accept(']')) do {
        if (count == extents.size())
          scan_.fail("shape: more than " + std::to_string(limits::dimensions) + " dimensions");
        extents[count++] = scan_.whole_number("shape: an extent");
      } while (scan_.another(']', "shape: after an extent"));
    shape.assign(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void parse_offsets(tensor_entry& entry) {
    scan_.expect('[', "offsets: data_offsets");
    entry.begin = scan_.whole_number("offsets: the begin of the data");
    scan_.expect(',', "offsets: data_offsets is [begin, end]");
    entry.end = scan_.whole_number("offsets: the end of the data");
    scan_.expect(']', "offsets: data_offsets is [begin, end]");
  }

  void check_names() {
    auto& order = header_.by_name;
    auto const& entries = header_.entries;
    order.resize(entries.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    // Equal names in file order, so that the later one is reported.
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      int const c = entries[a].name.compare(entries[b].name);
      return c != 0 ? c < 0 : a < b;
    });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (std::string_view const name = entries[order[i]].name; name == entries[order[i - 1]].name)
        scan_.fail_at(name.data(), "duplicate: " + tensor_text(name) +
                                       " occurs twice; which one is meant is not guessed");
    metadata_list sorted = header_.metadata;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i].first == sorted[i - 1].first)
        scan_.fail_at(sorted[i].first.data(),
                      "duplicate: metadata " + quoted(sorted[i].first) + " occurs twice");
  }

  [[noreturn]] void refuse_tensor(tensor_entry const& entry, std::string const& text) const {
    scan_.fail_at(entry.name.data(), tensor_text(entry.name) + ": " + text);
  }

  static std::string range_text(tensor_entry const& entry) {
    return "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + ")";
  }

  void check_layout() const {
    for (tensor_entry const& entry : header_.entries) {
      auto const bytes = bytes_of(entry.shape, entry.type);
      std::string const what =
          "shape " + shape_text(entry.shape) + " of " + std::string(name_of(entry.type));
      if (!bytes) refuse_tensor(entry, "overflow: " + what + " has more than 2^63 bytes");
      if (entry.end < entry.begin)
        refuse_tensor(entry, "offsets: " + range_text(entry) + " are reversed");
      if (entry.end - entry.begin != *bytes)
        refuse_tensor(entry, "offsets: " + range_text(entry) + " hold " +
                                 std::to_string(entry.end - entry.begin) + " bytes, but " + what +
                                 " needs " + std::to_string(*bytes));
    }
    check_coverage();
  }

  void check_coverage() const {
    auto const& entries = header_.entries;
    std::int64_t const data_bytes = file_.size() - header_.data_begin;
    std::vector<std::uint32_t> order(header_.by_name);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      return std::pair(entries[a].begin, entries[a].end) <
             std::pair(entries[b].begin, entries[b].end);
    });
    std::int64_t covered = 0;
    for (std::uint32_t i : order) {
      tensor_entry const& entry = entries[i];
      if (entry.begin != covered) {
        std::string const text = "offsets: " + range_text(entry);
        if (entry.end > data_bytes)
          refuse_tensor(entry, text + " lie beyond the end of the data, which has " +
                                   std::to_string(data_bytes) + " bytes");
        if (entry.begin < covered)
          refuse_tensor(entry, text + " overlap another tensor, whose data ends at " +
                                   std::to_string(covered));
        refuse_tensor(entry, text + " leave a hole after " + std::to_string(covered));
      }
      covered = entry.end;
    }
    if (covered == data_bytes) return;
    std::string const sizes = "size: the header describes " + std::to_string(covered) +
                              " bytes of data, the file has " + std::to_string(data_bytes);
    refuse_file(file_.path(), "byte " + std::to_string(file_.size()),
                sizes + (covered > data_bytes
                             ? "; it was truncated, copy or write it again"
                             : "; there are bytes after the last tensor, write the file again"));
  }

  readable_file const& file_;
  safetensors_header& header_;
  json_scanner scan_;
  std::string subject_;
};

/// A hint for files that people mistake for safetensors.
inline std::string hint_of_start(std::span<char const> start) {
  std::string_view const text(start.data(), start.size());
  if (text.starts_with("PK\3\4") || text.starts_with("\x80\x02"))
    return "; it is a PyTorch checkpoint (zip or pickle), convert it in Python with "
           "safetensors.torch.save_file";
  if (text.starts_with("version ")) return "; it is a git-lfs pointer, fetch the file itself";
  return "";
}

/// Reads and checks the header. Allocates the header's text (at most the file) and the entries.
inline safetensors_header read_header(readable_file const& file) {
  std::array<char, 8> start{};
  if (file.size() < 8)
    refuse_file(
        file.path(), "byte " + std::to_string(file.size()),
        "truncated: a safetensors file starts with 8 bytes of header length, this one has " +
            std::to_string(file.size()) + " bytes; copy or write it again");
  file.read(0, std::as_writable_bytes(std::span(start)), "header length");
  auto const length = std::bit_cast<std::uint64_t>(start);
  std::string const is = "header length: the file says " + std::to_string(length) + " bytes, ";
  std::string const hint = hint_of_start(start);
  if (length < 2) refuse_file(file.path(), "byte 0", is + "the shortest header '{}' has 2" + hint);
  auto const rest = static_cast<std::uint64_t>(file.size() - 8);
  if (length > static_cast<std::uint64_t>(limits::header_bytes))
    refuse_file(file.path(), "byte 0",
                is + "at most " + std::to_string(limits::header_bytes) + " are read" + hint);
  if (length > rest)
    refuse_file(file.path(), "byte 0", is + "only " + std::to_string(rest) + " follow" + hint);

  safetensors_header header;
  header.text = std::make_unique_for_overwrite<char[]>(length);
  header.data_begin = 8 + static_cast<std::int64_t>(length);
  file.read(8, std::as_writable_bytes(std::span(header.text.get(), length)), "header");
  header_parser(file, header, static_cast<std::int64_t>(length)).parse();
  return header;
}

}  // namespace detail
}  // namespace dtm::io
