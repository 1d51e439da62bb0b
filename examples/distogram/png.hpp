#pragma once
// Writes an image as PNG.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace example {

/// 8-bit red, green, blue; rows from the top.
struct image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> bytes;

  image(int columns, int rows, std::uint8_t grey = 255)
      : width(columns), height(rows), bytes(std::size_t(columns) * std::size_t(rows) * 3, grey) {}

  void set(int x, int y, std::array<std::uint8_t, 3> colour) {
    std::size_t const at = (std::size_t(y) * std::size_t(width) + std::size_t(x)) * 3;
    for (std::size_t channel = 0; channel < 3; ++channel) bytes[at + channel] = colour[channel];
  }
};

/// Throws dtm::file_error where the file cannot be written.
void write_png(std::string const& path, image const& picture);

}  // namespace example
