#include "png.hpp"

#include <cerrno>
#include <cstring>

#include <dtm/core/errors.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace example {

void write_png(std::string const& path, image const& picture) {
  errno = 0;
  if (stbi_write_png(path.c_str(), picture.width, picture.height, 3, picture.bytes.data(),
                     picture.width * 3) == 0) {
    throw dtm::file_error(path + ": cannot be written: " + std::strerror(errno));
  }
}

}  // namespace example
