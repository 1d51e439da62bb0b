// Damaged files: thousands of random changes to a small valid file, and headers that lie about
// sizes. Either the file is consistent, or a file_error says what is wrong; nothing crashes, and
// memory stays within the file + 64 MiB.

#include <atomic>
#include <cstdlib>
#include <new>
#include <random>

#include "dtm/io/safetensors.hpp"
#include "io/files.hpp"
#include "support/catch.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

// The counting allocator of this program. Every block carries its size in front.
std::atomic<std::int64_t> live{0}, peak{0};
constexpr std::size_t front = 16;

void* counted(std::size_t size) {
  auto* const block = static_cast<char*>(std::malloc(size + front));
  if (block == nullptr) throw std::bad_alloc();
  *reinterpret_cast<std::size_t*>(block) = size;
  std::int64_t const now = live += static_cast<std::int64_t>(size);
  if (now > peak) peak = now;
  return block + front;
}

void uncount(void* memory) noexcept {
  if (memory == nullptr) return;
  char* const block = static_cast<char*>(memory) - front;
  live -= static_cast<std::int64_t>(*reinterpret_cast<std::size_t*>(block));
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  uncount(memory);
}
void operator delete[](void* memory) noexcept {
  uncount(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  uncount(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  uncount(memory);
}

namespace {

/// Most memory that opening a file takes at once.
std::int64_t peak_of_opening(std::string const& path, std::string& message) {
  std::int64_t const before = live;
  peak = before;
  message = file_error_of([&] { io::safetensors_file::open(path); });
  return peak - before;
}

std::string small_file() {
  return raw_file("{\"__metadata__\":{\"a\":\"b\\u00e9\"}," +
                      tensor_field("x.y", "\"F32\"", "[2,3]", "[0,24]") + "," +
                      tensor_field("m", "\"BOOL\"", "[3]", "[24,27]") + "," +
                      tensor_field("z", "\"I64\"", "[]", "[27,35]") + "} ",
                  35);
}

std::string mutated(std::string bytes, std::mt19937& engine) {
  static std::string const tokens[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "\\",
                                       "\\u0000",
                                       "-1",
                                       "0",
                                       "1e9",
                                       "18446744073709551615",
                                       "9223372036854775807",
                                       "\"F32\"",
                                       "\"F64\"",
                                       "\"shape\"",
                                       "\"dtype\"",
                                       "null",
                                       "\xff"};
  int const changes = 1 + static_cast<int>(engine() % 3);
  for (int i = 0; i < changes && !bytes.empty(); ++i) {
    std::size_t const place = engine() % bytes.size();
    switch (engine() % 6) {
      case 0:
        bytes[place] = static_cast<char>(engine());
        break;
      case 1:
        bytes[place] = static_cast<char>(bytes[place] ^ (1 << engine() % 8));
        break;
      case 2:
        bytes.resize(place);
        break;
      case 3:
        bytes.insert(place, tokens[engine() % std::size(tokens)]);
        break;
      case 4:
        bytes.erase(place, 1 + engine() % 8);
        break;
      case 5:
        bytes.insert(place, bytes.substr(engine() % bytes.size(), engine() % 40));
        break;
    }
  }
  // Half of the time the length is right again, so that the header is reached.
  if (bytes.size() > 8 && engine() % 2)
    if (auto const end = bytes.rfind('}'); end != std::string::npos && end >= 8)
      bytes.replace(0, 8, length_bytes(end - 7));
  return bytes;
}

/// Reads everything that a file which opened has to give; returns whether the parts add up.
bool consistent(io::safetensors_file const& file, std::size_t file_bytes) {
  std::size_t bytes = 0;
  for (io::tensor_entry const& entry : file.entries()) {
    std::size_t elements = 1;
    for (std::int64_t extent : entry.shape) elements *= static_cast<std::size_t>(extent);
    std::size_t const size = elements * static_cast<std::size_t>(io::size_of(entry.type));
    try {
      if (file.read_bytes(entry.name).size() != size) return false;
    } catch (file_error const& error) {
      if (std::string(error.what()).find("must be 0 or 1") == std::string::npos) return false;
    }
    bytes += size;
  }
  return bytes + 8 <= file_bytes;
}

}  // namespace

TEST_CASE("random changes to a file load consistently or are refused") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors", original = small_file();
  put(path, original);
  REQUIRE(consistent(io::safetensors_file::open(path), original.size()));
  std::mt19937 engine(20240817);
  int loaded = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string const bytes = mutated(original, engine);
    std::filesystem::remove(path);
    put(path, bytes);
    std::string const message = file_error_of([&] {
      bool const good = consistent(io::safetensors_file::open(path), bytes.size());
      if (!good) FAIL("round " << round << " loads inconsistently");
      ++loaded;
    });
    if (message.empty()) continue;
    ++refused;
    if (!message.starts_with(path + ": ")) FAIL("round " << round << ": " << message);
  }
  CHECK(loaded > 20);
  CHECK(refused > 1000);
}

TEST_CASE("every prefix of a file is refused") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors", original = small_file();
  for (std::size_t length = 0; length < original.size(); ++length) {
    put(path, original.substr(0, length));
    INFO(length);
    CHECK(file_error_of([&] { io::safetensors_file::open(path); }) != "");
  }
}

TEST_CASE("a header that lies about sizes costs no memory") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  std::string message;
  constexpr std::int64_t small = 1 << 20;
  for (std::uint64_t length : {std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 4,
                               std::uint64_t{99'999'999}, std::uint64_t{17}}) {
    put(path, length_bytes(length) + "{}");
    CHECK(peak_of_opening(path, message) < small);
    CHECK_THAT(message, contains("header length"));
  }
  for (char const* shape : {"[1099511627776]", "[1099511627776,0]", "[1048576,1048576]"}) {
    put(path, raw_file("{" + tensor_field("a", "\"F32\"", shape, "[0,4398046511104]") + "}", 8));
    CHECK(peak_of_opening(path, message) < small);
    CHECK(message != "");
  }
  put(path,
      raw_file("{" + tensor_field("a", "\"I8\"", "[1099511627776]", "[0,1099511627776]") + "}", 8));
  CHECK(peak_of_opening(path, message) < small);
  CHECK_THAT(message,
             contains("size: the header describes 1099511627776 bytes of data, the file has 8"));
}

TEST_CASE("headers made to be expensive stay within the file + 64 MiB") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  std::string const deep_shape =
      "[0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]";
  std::string header = "{", message;
  SECTION("the most tensors with the most dimensions") {
    for (int i = 0; i < 100'000; ++i)
      header += (i ? "," : "") + tensor_field(std::to_string(i), "\"I8\"", deep_shape, "[0,0]");
  }
  SECTION("one tensor too many") {
    for (int i = 0; i < 100'001; ++i)
      header += (i ? "," : "") + tensor_field(std::to_string(i), "\"I8\"", "[0]", "[0,0]");
    message = "header: more than 100000 tensors";
  }
  SECTION("the most metadata") {
    header += "\"__metadata__\":{";
    for (int i = 0; i < 100'000; ++i) header += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
    header += "}";
  }
  SECTION("one metadata entry too many") {
    header += "\"__metadata__\":{";
    for (int i = 0; i < 100'001; ++i) header += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
    header += "}";
    message = "header: more than 100000 metadata entries";
  }
  SECTION("long metadata") {
    header += "\"__metadata__\":{\"a\":\"" + std::string(50'000'000, 'x') + "\"}";
  }
  std::string const bytes = raw_file(header + "}");
  put(path, bytes);
  std::string refusal;
  std::int64_t const taken = peak_of_opening(path, refusal);
  if (message.empty()) CHECK(refusal == "");
  CHECK_THAT(refusal, contains(message));
  CHECK(taken < static_cast<std::int64_t>(bytes.size()) + (64 << 20));
}
