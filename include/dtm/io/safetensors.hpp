#pragma once
// Reads safetensors files: strictly, without mapping them, and only the bytes that are asked for.
//
//   auto file = dtm::io::safetensors_file::open("weights.safetensors");
//   for (auto const& entry : file.entries()) ...            // name, type, shape, in the order of
//   the header std::vector<float> weight = file.read<float>("layer.weight");       // F32 exactly,
//   or an error std::vector<double> wide = file.read_as<double>("layer.weight");    // any type
//   that double holds exactly
//
// Opening checks the whole header against the size of the file; see safetensors_header.hpp for what
// is refused. Every fault is a dtm::file_error that starts with the path and names the byte or the
// tensor. Data is copied, so tensors that are misaligned in the file (after a BOOL) load like any
// other. Values are not inspected, except that a BOOL must be 0 or 1. Local: every rank reads for
// itself (agreement.hpp has the collective open).

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtm/io/content_hash.hpp"
#include "dtm/io/dtype.hpp"
#include "dtm/io/readable_file.hpp"
#include "dtm/io/safetensors_header.hpp"

namespace dtm::io {

class safetensors_file {
 public:
  /// Opens and checks a file. Memory: at most the file's header twice, never more than the file +
  /// 64 MiB.
  static safetensors_file open(std::string path) {
    return safetensors_file(detail::readable_file(std::move(path)));
  }

  std::string const& path() const { return file_.path(); }

  /// Tensors and metadata in the order of the header. The views live as long as this object (moved
  /// or not).
  std::span<tensor_entry const> entries() const { return header_.entries; }
  metadata_list const& metadata() const { return header_.metadata; }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (tensor_entry const& entry : entries()) result.emplace_back(entry.name);
    return result;
  }

  /// Value of a metadata entry, or nothing.
  std::optional<std::string_view> metadata(std::string_view key) const {
    for (auto const& [name, value] : header_.metadata)
      if (name == key) return value;
    return std::nullopt;
  }

  /// The entry of that name, or null.
  tensor_entry const* find(std::string_view name) const {
    auto const& order = header_.by_name;
    auto const place =
        std::lower_bound(order.begin(), order.end(), name,
                         [&](auto i, std::string_view n) { return header_.entries[i].name < n; });
    if (place == order.end() || header_.entries[*place].name != name) return nullptr;
    return &header_.entries[*place];
  }
  bool contains(std::string_view name) const { return find(name) != nullptr; }

  /// The entry of that name; file_error when there is none.
  tensor_entry const& at(std::string_view name) const {
    if (tensor_entry const* entry = find(name)) return *entry;
    std::string some;
    for (std::size_t i = 0; i < entries().size() && i < 5; ++i)
      some += (i == 0 ? ": " : ", ") + detail::quoted(entries()[i].name);
    detail::refuse_file(path(), detail::tensor_text(name),
                        "names: not in the file, which holds " + std::to_string(entries().size()) +
                            " tensors" + some + (entries().size() > 5 ? ", ..." : ""));
  }

  /// All elements, row-major. T must be stored as the tensor's type (`stored_as`); std::uint8_t
  /// reads BOOL as well.
  template <storable T>
  std::vector<T> read(std::string_view name) const {
    tensor_entry const& entry = at(name);
    return read_slice<T>(entry, 0, entry.elements());
  }

  /// Elements [first, first + count) of the row-major tensor; reads only their bytes.
  template <storable T>
  std::vector<T> read_slice(std::string_view name, std::int64_t first, std::int64_t count) const {
    return read_slice<T>(at(name), first, count);
  }

  /// All elements converted to T, from any type whose every value T holds exactly; another is
  /// refused.
  template <class T>
  std::vector<T> read_as(std::string_view name) const {
    tensor_entry const& entry = at(name);
    if (!widens_to<T>(entry.type))
      refuse(
          entry,
          "dtype: " + std::string(name_of(entry.type)) + " does not convert to " + type_text<T>() +
              " without loss; read it with its own type and convert it where the loss is wanted");
    auto result = allocate<T>(entry, entry.elements());
    constexpr std::int64_t step = 8192;
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(std::min(step, entry.elements()) * size_of(entry.type)));
    for (std::int64_t first = 0; first < entry.elements(); first += step) {
      std::int64_t const count = std::min(step, entry.elements() - first);
      std::span const bytes(buffer.data(), static_cast<std::size_t>(count * size_of(entry.type)));
      read_bytes(entry, first, bytes);
      convert(entry.type, bytes.data(),
              std::span(result.data() + first, static_cast<std::size_t>(count)));
    }
    return result;
  }

  /// The bytes of a tensor as they are in the file.
  std::vector<std::byte> read_bytes(std::string_view name) const {
    tensor_entry const& entry = at(name);
    auto result = allocate<std::byte>(entry, entry.end - entry.begin);
    read_bytes(entry, 0, result);
    return result;
  }

  /// Hash of the whole file, header included; equal files have equal hashes (agreement.hpp compares
  /// ranks).
  std::uint64_t hash() const {
    content_hash hash;
    std::vector<std::byte> buffer(
        static_cast<std::size_t>(std::min<std::int64_t>(file_.size(), 1 << 20)));
    for (std::int64_t first = 0; first < file_.size();
         first += static_cast<std::int64_t>(buffer.size())) {
      auto const count =
          std::min<std::int64_t>(static_cast<std::int64_t>(buffer.size()), file_.size() - first);
      std::span const bytes(buffer.data(), static_cast<std::size_t>(count));
      file_.read(first, bytes, "hash");
      hash.add(bytes);
    }
    return hash.value();
  }

 private:
  explicit safetensors_file(detail::readable_file file)
      : file_(std::move(file)), header_(detail::read_header(file_)) {}

  [[noreturn]] void refuse(tensor_entry const& entry, std::string const& text) const {
    detail::refuse_file(path(), detail::tensor_text(entry.name), text);
  }

  template <class T>
  static std::string type_text() {
    return std::string(std::is_floating_point_v<T> ? "float"
                       : std::is_signed_v<T>       ? "int"
                                                   : "uint") +
           std::to_string(8 * sizeof(T));
  }

  template <class T>
  std::vector<T> allocate(tensor_entry const& entry, std::int64_t count) const {
    try {
      return std::vector<T>(static_cast<std::size_t>(count));
    } catch (std::exception const&) {
      refuse(entry, "memory: " + std::to_string(count) + " elements of " +
                        std::to_string(sizeof(T)) + " bytes do not fit; read slices");
    }
  }

  template <class T>
  std::vector<T> read_slice(tensor_entry const& entry, std::int64_t first,
                            std::int64_t count) const {
    constexpr dtype wanted = stored_as<T>::value;
    if (entry.type != wanted && !(wanted == dtype::u8 && entry.type == dtype::boolean))
      refuse(entry, "dtype: the file has " + std::string(name_of(entry.type)) +
                        ", the program reads " + std::string(name_of(wanted)) +
                        "; convert the file, or use read_as for a type that is wider");
    if (first < 0 || count < 0 || first > entry.elements() || count > entry.elements() - first)
      refuse(entry, "slice: elements [" + std::to_string(first) + ", +" + std::to_string(count) +
                        ") of " + std::to_string(entry.elements()) + " were asked for");
    auto result = allocate<T>(entry, count);
    read_bytes(entry, first, std::as_writable_bytes(std::span(result)));
    return result;
  }

  void read_bytes(tensor_entry const& entry, std::int64_t first_element,
                  std::span<std::byte> out) const {
    std::int64_t const first =
        header_.data_begin + entry.begin + first_element * size_of(entry.type);
    file_.read(first, out, detail::tensor_text(entry.name));
    if (entry.type != dtype::boolean) return;
    for (std::size_t i = 0; i < out.size(); ++i)
      if (std::to_integer<int>(out[i]) > 1)
        detail::refuse_file(path(), "byte " + std::to_string(first + static_cast<std::int64_t>(i)),
                            detail::tensor_text(entry.name) +
                                ": value: " + std::to_string(std::to_integer<int>(out[i])) +
                                " in a BOOL tensor, must be 0 or 1");
  }

  template <class Stored, class T, class F>
  static void convert_with(std::byte const* from, std::span<T> to, F&& value) {
    for (std::size_t i = 0; i < to.size(); ++i) {
      Stored stored;
      std::memcpy(&stored, from + i * sizeof(Stored), sizeof(Stored));
      to[i] = static_cast<T>(value(stored));
    }
  }

  template <class T>
  static void convert(dtype type, std::byte const* from, std::span<T> to) {
    auto const same = [](auto x) { return x; };
    switch (type) {
      case dtype::f64:
        return convert_with<double>(from, to, same);
      case dtype::f32:
        return convert_with<float>(from, to, same);
      case dtype::f16:
        return convert_with<std::uint16_t>(from, to, half_to_float);
      case dtype::bf16:
        return convert_with<bf16>(from, to, [](bf16 x) { return float(x); });
      case dtype::i64:
        return convert_with<std::int64_t>(from, to, same);
      case dtype::i32:
        return convert_with<std::int32_t>(from, to, same);
      case dtype::i16:
        return convert_with<std::int16_t>(from, to, same);
      case dtype::i8:
        return convert_with<std::int8_t>(from, to, same);
      case dtype::u8:
      case dtype::boolean:
        return convert_with<std::uint8_t>(from, to, same);
    }
  }

  detail::readable_file file_;
  detail::safetensors_header header_;
};

}  // namespace dtm::io
