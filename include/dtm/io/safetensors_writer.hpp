#pragma once
// Writes safetensors files that this library and the reference implementation read, and replaces an
// older file only as a whole (replace_file.hpp).
//
//   std::vector<dtm::io::tensor_to_write> tensors = {
//       dtm::io::to_write("layer.weight", {4, 3}, std::span<float const>(weight))};
//   dtm::io::write_safetensors("weights.safetensors", tensors, {{"step", "12"}});
//
// The header lists the tensors in the order given; the data is laid out by falling element size
// behind a header padded to 8 bytes, so that every tensor is aligned. Local: one rank writes, the
// others do not call it.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dtm/io/dtype.hpp"
#include "dtm/io/replace_file.hpp"
#include "dtm/io/safetensors_header.hpp"

namespace dtm::io {

/// One tensor for a file, row-major. The bytes are only referred to.
struct tensor_to_write {
  std::string name;
  dtype type = dtype::f64;
  std::vector<std::int64_t> shape;
  std::span<std::byte const> bytes;
  std::shared_ptr<void const> owner = nullptr;  // of the bytes, where nobody else is
};

template <storable T>
tensor_to_write to_write(std::string name, std::vector<std::int64_t> shape,
                         std::span<T const> values) {
  return {std::move(name), stored_as<T>::value, std::move(shape), std::as_bytes(values), nullptr};
}

using metadata_to_write = std::vector<std::pair<std::string, std::string>>;

namespace detail {

inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto const byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20)
      out += {'\\', 'u', '0', '0', "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
    else
      out += c;
  }
  return out + '"';
}

inline void check_tensor_to_write(std::string_view path, tensor_to_write const& tensor) {
  auto const refuse = [&](std::string const& text) {
    refuse_file(path, tensor_text(tensor.name), text);
  };
  std::string const what =
      "shape " + shape_text(tensor.shape) + " of " + std::string(name_of(tensor.type));
  if (std::string const fault = fault_of_name(tensor.name); !fault.empty())
    refuse("name: the tensor name " + fault);
  if (tensor.name == metadata_key) refuse("name: this name is reserved");
  if (tensor.shape.size() > limits::dimensions)
    refuse("shape: more than " + std::to_string(limits::dimensions) + " dimensions");
  for (std::int64_t extent : tensor.shape)
    if (extent < 0) refuse("shape: " + shape_text(tensor.shape) + " has a negative extent");
  auto const bytes = bytes_of(tensor.shape, tensor.type);
  if (!bytes) refuse("overflow: " + what + " has more than 2^63 bytes");
  if (static_cast<std::uint64_t>(*bytes) != tensor.bytes.size())
    refuse("size: " + what + " needs " + std::to_string(*bytes) + " bytes, " +
           std::to_string(tensor.bytes.size()) + " were given");
  if (tensor.type == dtype::boolean)
    for (std::byte byte : tensor.bytes)
      if (std::to_integer<int>(byte) > 1)
        refuse("value: " + std::to_string(std::to_integer<int>(byte)) +
               " in a BOOL tensor, must be 0 or 1");
}

inline void check_distinct(std::string_view path, std::vector<std::string_view> names,
                           std::string const& noun) {
  std::sort(names.begin(), names.end());
  auto const twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    refuse_file(path, noun + " " + quoted(*twice), "duplicate: given twice; names must differ");
}

inline void check_to_write(std::string_view path, std::span<tensor_to_write const> tensors,
                           metadata_to_write const& metadata) {
  if (tensors.size() > limits::tensors || metadata.size() > limits::metadata_entries)
    refuse_file(path, "",
                "size: " + std::to_string(tensors.size()) + " tensors and " +
                    std::to_string(metadata.size()) + " metadata entries; at most " +
                    std::to_string(limits::tensors) + " each are read");
  std::vector<std::string_view> names, keys;
  for (tensor_to_write const& tensor : tensors) {
    check_tensor_to_write(path, tensor);
    names.push_back(tensor.name);
  }
  for (auto const& [key, value] : metadata) {
    if (first_invalid_utf8(key) >= 0 || first_invalid_utf8(value) >= 0)
      refuse_file(path, "metadata " + quoted(key), "is not UTF-8; metadata is text");
    keys.push_back(key);
  }
  check_distinct(path, std::move(names), "tensor");
  check_distinct(path, std::move(keys), "metadata");
}

/// Order of the data: larger elements first, otherwise as given.
inline std::vector<std::size_t> data_order(std::span<tensor_to_write const> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].type) > size_of(tensors[b].type);
  });
  return order;
}

/// Length and header as they start the file.
inline std::string header_to_write(std::string_view path, std::span<tensor_to_write const> tensors,
                                   std::span<std::size_t const> order,
                                   metadata_to_write const& metadata) {
  std::vector<std::size_t> begin(tensors.size());
  std::size_t next = 0;
  for (std::size_t i : order) begin[i] = std::exchange(next, next + tensors[i].bytes.size());
  std::string text = "{";
  auto const separate = [&] { text += text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::string pairs;
    for (auto const& [key, value] : metadata)
      pairs += (pairs.empty() ? "" : ",") + json_string(key) + ":" + json_string(value);
    text += json_string(metadata_key) + ":{" + pairs + "}";
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    separate();
    text += json_string(tensors[i].name) + ":{\"dtype\":\"" +
            std::string(name_of(tensors[i].type)) + "\",\"shape\":" + shape_text(tensors[i].shape) +
            ",\"data_offsets\":[" + std::to_string(begin[i]) + "," +
            std::to_string(begin[i] + tensors[i].bytes.size()) + "]}";
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (static_cast<std::int64_t>(text.size()) > limits::header_bytes)
    refuse_file(path, "",
                "header length: " + std::to_string(text.size()) + " bytes, at most " +
                    std::to_string(limits::header_bytes) + " are read; split the file");
  auto const length = std::bit_cast<std::array<char, 8>>(static_cast<std::uint64_t>(text.size()));
  return std::string(length.begin(), length.end()) + text;
}

template <class System>
void write_safetensors(System& system, std::string const& path,
                       std::span<tensor_to_write const> tensors,
                       metadata_to_write const& metadata) {
  check_to_write(path, tensors, metadata);
  std::vector<std::size_t> const order = data_order(tensors);
  std::string const header = header_to_write(path, tensors, order, metadata);
  file_replacement file(system, path);
  file.write(std::as_bytes(std::span(header)));
  for (std::size_t i : order) file.write(tensors[i].bytes);
  file.commit();
}

}  // namespace detail

/// Writes the file, or throws file_error (with the path, and the tensor or the failed step) and
/// leaves what was there before. On return the content is on the disk.
inline void write_safetensors(std::string const& path, std::span<tensor_to_write const> tensors,
                              metadata_to_write const& metadata = {}) {
  detail::system_calls system;
  detail::write_safetensors(system, path, tensors, metadata);
}

}  // namespace dtm::io
