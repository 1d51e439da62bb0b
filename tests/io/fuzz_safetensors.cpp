// libFuzzer target for the reader: takes any bytes for a file and for an index, and reads all that
// opens.
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -I include
//   tests/io/fuzz_safetensors.cpp -o fuzz
//   ./fuzz -dict=tests/io/fuzz_safetensors.dict -max_len=2048 -max_total_time=60 corpus/
//
// The first byte of the input says how the file is made of the rest: as it is (0), or as a header
// behind its right length with so many bytes of zeros less one as data. Otherwise few inputs would
// get past the length.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

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

std::string file_of(std::string const& input) {
  if (input.empty() || input[0] == 0) return input.substr(input.empty() ? 0 : 1);
  std::uint64_t const length = input.size() - 1;
  auto const data_bytes = static_cast<unsigned char>(input[0]) - 1u;
  return std::string(reinterpret_cast<char const*>(&length), 8) + input.substr(1) +
         std::string(data_bytes, 0);
}

int in_memory(std::string const& bytes) {
  int const file = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  int const file = in_memory(file_of({reinterpret_cast<char const*>(data), size}));
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

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

/// Half of the changes are libFuzzer's; the others repeat a slice between two separators, as JSON
/// repeats itself.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  std::minstd_rand engine(seed);
  if (size < 2 || engine() % 2) return LLVMFuzzerMutate(data, size, most);
  std::string text(reinterpret_cast<char const*>(data), size);
  std::size_t const comma = text.find_first_of(",[{", 1 + engine() % (size - 1));
  std::size_t const end =
      comma == std::string::npos ? comma : text.find_first_of(",]}", comma + 1 + engine() % 80);
  if (end == std::string::npos) return LLVMFuzzerMutate(data, size, most);
  std::string const slice = "," + text.substr(comma + 1, end - comma - 1);
  int const times = engine() % 4 ? 1 : static_cast<int>(engine() % 40);
  for (int i = 0; i < times && text.size() + slice.size() <= most; ++i) text.insert(end, slice);
  text.copy(reinterpret_cast<char*>(data), text.size());
  return text.size();
}
