// libFuzzer target for the reader: opens any bytes as a file, as an index and as JSON text, and
// reads all that opens.
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -I include
//   tests/io/fuzz_safetensors.cpp -o fuzz
//   ./fuzz -max_len=4096 -max_total_time=60 corpus/

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "dtm/io/safetensors.hpp"
#include "dtm/io/safetensors_set.hpp"

namespace {

void read_everything(dtm::io::safetensors_file const& file) {
  std::int64_t end = 0;
  for (dtm::io::tensor_entry const& entry : file.entries()) {
    if (file.find(entry.name) != &entry) std::abort();
    try {
      if (dtm::io::widens_to<double>(entry.type)) {
        auto const values = file.read_as<double>(entry.name);
        if (static_cast<std::int64_t>(values.size()) != entry.elements()) std::abort();
      }
      file.read_bytes(entry.name);
    } catch (dtm::file_error const&) {  // a BOOL that is neither 0 nor 1
    }
    end = std::max(end, entry.end);
  }
  file.hash();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  int const file = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  std::string const path = "/proc/self/fd/" + std::to_string(file);
  try {
    read_everything(dtm::io::safetensors_file::open(path));
  } catch (dtm::file_error const& error) {
    if (std::string_view(error.what()).substr(0, path.size()) != path) std::abort();
  }
  try {
    dtm::io::safetensors_set::open(path);
  } catch (dtm::file_error const&) {
  }
  ::close(file);
  return 0;
}
