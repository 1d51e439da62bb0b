#pragma once
// Files for the tests of io: a folder that goes away, files made from raw parts, and the text of an
// error.

#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "dtm/core/errors.hpp"

namespace dtm::testing {

/// A fresh folder, removed with everything in it.
class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtm_io_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  temporary_folder(temporary_folder const&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(std::string const& name) const { return path_ + "/" + name; }
  std::string const& path() const { return path_; }

 private:
  std::string path_;
};

inline void put(std::string const& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string get(std::string const& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The eight bytes that start a file.
inline std::string length_bytes(std::uint64_t length) {
  auto const bytes = std::bit_cast<std::array<char, 8>>(length);
  return {bytes.begin(), bytes.end()};
}

/// A file of this header and so many bytes of data.
inline std::string raw_file(std::string const& header, std::size_t data_bytes = 0) {
  std::string data(data_bytes, '\0');
  for (std::size_t i = 0; i < data_bytes; ++i)
    data[i] = static_cast<char>(i % 2);  // valid as BOOL as well
  return length_bytes(header.size()) + header + data;
}

/// `"name":{...}` of a header.
inline std::string tensor_field(std::string const& name, std::string const& type,
                                std::string const& shape, std::string const& offsets) {
  return "\"" + name + "\":{\"dtype\":" + type + ",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

/// Text of the file_error that `risky` throws, "" when it throws nothing; other exceptions pass.
template <class F>
std::string file_error_of(F&& risky) {
  try {
    risky();
  } catch (file_error const& error) {
    return error.what();
  }
  return "";
}

}  // namespace dtm::testing
