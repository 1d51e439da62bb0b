// What is written is what is read: every type, order, alignment, metadata; widening, slices, the
// hash; and the golden files, where there are any.

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "dtm/io/safetensors.hpp"
#include "dtm/io/safetensors_writer.hpp"
#include "io/files.hpp"
#include "support/catch.hpp"

using namespace dtm;
using namespace dtm::testing;
using io::dtype;
using io::safetensors_file;

namespace {

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = std::byte(engine() & 0xff);
  return bytes;
}

template <class T>
void check_round_trip(std::string const& path, std::vector<T> const& values) {
  std::int64_t const count = static_cast<std::int64_t>(values.size());
  std::vector<io::tensor_to_write> const tensors = {
      io::to_write("x", {1, count}, std::span<T const>(values))};
  io::write_safetensors(path, tensors);
  auto const file = safetensors_file::open(path);
  CHECK(file.at("x").type == io::stored_as<T>::value);
  CHECK(file.at("x").shape == std::vector<std::int64_t>{1, count});
  CHECK(file.read<T>("x") == values);
}

template <class T, class Wide>
void check_widening(std::string const& path, std::vector<T> const& values) {
  std::vector<io::tensor_to_write> const tensors = {
      io::to_write("x", {static_cast<std::int64_t>(values.size())}, std::span<T const>(values))};
  io::write_safetensors(path, tensors);
  auto const wide = safetensors_file::open(path).read_as<Wide>("x");
  REQUIRE(wide.size() == values.size());
  for (std::size_t i = 0; i < wide.size(); ++i) CHECK(wide[i] == static_cast<Wide>(values[i]));
}

template <class T>
std::vector<T> extremes() {
  using limits = std::numeric_limits<T>;
  return {limits::lowest(), limits::max(), limits::min(), T{0}, T{1}, limits::denorm_min()};
}

}  // namespace

TEST_CASE("every type makes the round trip") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  check_round_trip(path, extremes<double>());
  check_round_trip(path, extremes<float>());
  check_round_trip(path, extremes<std::int64_t>());
  check_round_trip(path, extremes<std::int32_t>());
  check_round_trip(path, extremes<std::int16_t>());
  check_round_trip(path, extremes<std::int8_t>());
  check_round_trip(path, extremes<std::uint8_t>());
  check_round_trip(path, std::vector<bf16>{bf16(1.5f), bf16(-0.0f), bf16(3e38f)});
  check_round_trip(path, std::vector<float>{});
}

TEST_CASE("raw bytes of every type, in the order given, aligned and with metadata") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  std::vector<std::vector<std::byte>> bytes;
  std::vector<io::tensor_to_write> tensors;
  for (std::size_t i = 0; i < io::dtype_names.size(); ++i) {
    auto const type = static_cast<dtype>(io::dtype_names.size() - 1 -
                                         i);  // BOOL first: alignment is the writer's care
    bytes.push_back(
        random_bytes(static_cast<std::size_t>(15 * io::size_of(type)), static_cast<unsigned>(i)));
    if (type == dtype::boolean)
      for (std::byte& byte : bytes.back()) byte &= std::byte{1};
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    tensors.push_back({"t." + std::to_string(i),
                       static_cast<dtype>(io::dtype_names.size() - 1 - i),
                       {3, 5},
                       bytes[i]});
  tensors.push_back({"scalar", dtype::i8, {}, std::span(bytes[1]).first(1)});
  tensors.push_back({"none", dtype::f32, {0, 7}, {}});
  io::metadata_to_write const metadata = {
      {"z", "1"}, {"a \"quoted\"\n", std::string("\0\\\x1f\xc3\xa9", 5)}, {"", ""}};
  io::write_safetensors(path, tensors, metadata);

  auto const file = safetensors_file::open(path);
  REQUIRE(file.entries().size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto const& entry = file.entries()[i];
    CHECK(entry.name == tensors[i].name);
    CHECK(entry.type == tensors[i].type);
    CHECK(entry.shape == tensors[i].shape);
    CHECK(entry.begin % io::size_of(entry.type) == 0);
    auto const read = file.read_bytes(entry.name);
    CHECK(std::equal(read.begin(), read.end(), tensors[i].bytes.begin(), tensors[i].bytes.end()));
  }
  REQUIRE(file.metadata().size() == metadata.size());
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    CHECK(file.metadata()[i].first == metadata[i].first);
    CHECK(file.metadata()[i].second == metadata[i].second);
  }
  std::string const content = get(path);
  auto const length =
      std::bit_cast<std::uint64_t>(*reinterpret_cast<std::array<char, 8> const*>(content.data()));
  CHECK((8 + length) % 8 == 0);
  CHECK(file.hash() == io::hash_of(std::as_bytes(std::span(content))));

  auto moved = safetensors_file::open(path);
  auto const again = std::move(moved);
  CHECK(again.entries()[0].name == "t.0");
  CHECK(again.read_bytes("t.3") == file.read_bytes("t.3"));
}

TEST_CASE("widening is exact") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  check_widening<float, double>(path, extremes<float>());
  check_widening<double, double>(path, extremes<double>());
  check_widening<bf16, float>(path, {bf16(1.5f), bf16(-3e38f), bf16(1e-40f)});
  check_widening<bf16, double>(path, {bf16(1.5f), bf16(-3e38f)});
  check_widening<std::int32_t, double>(path, extremes<std::int32_t>());
  check_widening<std::int16_t, float>(path, extremes<std::int16_t>());
  check_widening<std::int8_t, float>(path, extremes<std::int8_t>());
  check_widening<std::uint8_t, float>(path, extremes<std::uint8_t>());
  check_widening<std::uint8_t, std::int16_t>(path, extremes<std::uint8_t>());
  check_widening<std::int32_t, std::int64_t>(path, extremes<std::int32_t>());
  std::vector<std::int16_t> long_one(20'000);
  for (std::size_t i = 0; i < long_one.size(); ++i) long_one[i] = static_cast<std::int16_t>(i);
  check_widening<std::int16_t, std::int32_t>(path, long_one);  // more than one buffer
  static_assert(!io::widens_to<float>(dtype::f64) && !io::widens_to<float>(dtype::i32) &&
                !io::widens_to<double>(dtype::i64));
  static_assert(!io::widens_to<std::uint8_t>(dtype::i8) && !io::widens_to<std::int8_t>(dtype::u8));
  static_assert(!io::widens_to<std::int64_t>(dtype::f16) &&
                !io::widens_to<std::int32_t>(dtype::i64));
}

TEST_CASE("half precision numbers") {
  CHECK(io::half_to_float(0x3c00) == 1.0f);
  CHECK(io::half_to_float(0xc000) == -2.0f);
  CHECK(io::half_to_float(0x7bff) == 65504.0f);
  CHECK(io::half_to_float(0x0400) == 0x1p-14f);
  CHECK(io::half_to_float(0x0001) == 0x1p-24f);
  CHECK(io::half_to_float(0x83ff) == -1023 * 0x1p-24f);
  CHECK(std::signbit(io::half_to_float(0x8000)));
  CHECK(io::half_to_float(0xfc00) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(io::half_to_float(0x7e01)));
  temporary_folder folder;
  std::array<std::uint16_t, 2> const bits = {0x3c00, 0xc000};
  std::vector<io::tensor_to_write> const tensors = {
      {"h", dtype::f16, {2}, std::as_bytes(std::span(bits))}};
  io::write_safetensors(folder / "h", tensors);
  CHECK(safetensors_file::open(folder / "h").read_as<float>("h") == std::vector<float>{1, -2});
}

TEST_CASE("the hash is XXH64") {
  auto const hash = [](std::string_view text) {
    return io::hash_of(std::as_bytes(std::span(text)));
  };
  CHECK(hash("") == 0xEF46DB3751D8E999u);
  CHECK(hash("a") == 0xD24EC4F1A98C6E5Bu);
  CHECK(hash("abc") == 0x44BC2CF5AD770999u);
  CHECK(hash("Nobody inspects the spammish repetition") == 0xFBCEA83C8A378BF1u);
  CHECK(io::hash_text(0x00BC2CF5AD77099Au) == "00bc2cf5ad77099a");
  std::vector<std::byte> const bytes = random_bytes(300, 1);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {  // however it is cut
    io::content_hash parts;
    parts.add(std::span(bytes).first(cut));
    parts.add(std::span(bytes).subspan(cut));
    CHECK(parts.value() == io::hash_of(bytes));
  }
}

TEST_CASE("the writer refuses what the reader would") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  put(path, "old");
  std::array<std::byte, 16> const bytes{};
  auto const message = [&](std::vector<io::tensor_to_write> const& tensors,
                           io::metadata_to_write const& metadata = {}) {
    std::string const text = file_error_of([&] { io::write_safetensors(path, tensors, metadata); });
    CHECK(text.starts_with(path + ": "));
    CHECK(get(path) == "old");
    return text;
  };
  auto const tensor = [&](std::string name, dtype type = dtype::f64,
                          std::vector<std::int64_t> shape = {2}) {
    return io::tensor_to_write{std::move(name), type, std::move(shape), bytes};
  };
  CHECK_THAT(message({tensor("")}), contains("tensor '': name: the tensor name is empty"));
  CHECK_THAT(message({tensor("a/b")}),
             contains("tensor 'a/b': name: the tensor name contains a slash"));
  CHECK_THAT(message({tensor(std::string("a\0", 2))}), contains("NUL byte"));
  CHECK_THAT(message({tensor("\xff")}), contains("is not UTF-8"));
  CHECK_THAT(message({tensor("__metadata__")}), contains("this name is reserved"));
  CHECK_THAT(message({tensor("a"), tensor("b"), tensor("a")}), contains("tensor 'a': duplicate"));
  CHECK_THAT(message({tensor("a", dtype::f64, {3})}),
             contains("tensor 'a': size: shape [3] of F64 needs 24 bytes, 16 were given"));
  CHECK_THAT(message({tensor("a", dtype::f64, {-2, -1})}),
             contains("shape: [-2, -1] has a negative extent"));
  CHECK_THAT(message({tensor("a", dtype::f64, std::vector<std::int64_t>(33, 1))}),
             contains("more than 32 dimensions"));
  CHECK_THAT(message({tensor("a", dtype::f64, {std::int64_t{1} << 62, 8})}), contains("overflow"));
  CHECK_THAT(message({tensor("a")}, {{"k", "\xff"}}), contains("metadata 'k': is not UTF-8"));
  CHECK_THAT(message({tensor("a")}, {{"k", "1"}, {"k", "2"}}), contains("metadata 'k': duplicate"));
  std::byte const two{2};
  CHECK_THAT(message({{"m", dtype::boolean, {1}, {&two, 1}}}),
             contains("tensor 'm': value: 2 in a BOOL tensor"));
  CHECK_THAT(message({tensor("a")}, {{"k", std::string(100'000'000, 'x')}}),
             contains("header length"));
  CHECK_THAT(message(std::vector<io::tensor_to_write>(100'001)),
             contains("size: 100001 tensors and 0 metadata entries; at most 100000 each"));
  CHECK_THAT(message({}, io::metadata_to_write(100'001)),
             contains("size: 0 tensors and 100001 metadata entries"));
  CHECK_THAT(message(std::vector<io::tensor_to_write>(100'001)),
             contains("size: 100001 tensors and 0 metadata entries; at most 100000 each"));
  CHECK_THAT(message({}, io::metadata_to_write(100'001)),
             contains("size: 0 tensors and 100001 metadata entries"));
  CHECK_THAT(file_error_of([&] { io::write_safetensors(folder / "absent/a", {}); }),
             contains("writing: cannot be created in this folder: No such file"));
  CHECK_THAT(file_error_of([&] { io::write_safetensors("", {}); }),
             contains("is not the path of a file"));
  CHECK_THAT(file_error_of([&] { io::write_safetensors(folder.path() + "/", {}); }),
             contains("is not the path of a file"));
  std::filesystem::create_directory(folder / "sub");
  CHECK_THAT(file_error_of([&] { io::write_safetensors(folder / "sub", {}); }),
             contains("writing: cannot be renamed"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) ==
        2);  // nothing is left over
}

TEST_CASE("golden files load", "[golden]") {
  char const* const given = std::getenv("DTM_GOLDEN_DIR");
  std::filesystem::path const golden = given ? given : DTM_GOLDEN_FOLDER;
  if (!std::filesystem::is_directory(golden)) {
    WARN("no golden folder " << golden.string());
    return;
  }
  int files = 0;
  for (auto const& item : std::filesystem::directory_iterator(golden)) {
    if (item.path().extension() != ".safetensors") continue;
    INFO(item.path().string());
    auto const file = safetensors_file::open(item.path());
    CHECK(!file.entries().empty());
    CHECK(file.metadata("module"));
    for (io::tensor_entry const& entry : file.entries())
      CHECK(file.read_bytes(entry.name).size() ==
            static_cast<std::size_t>(entry.end - entry.begin));
    ++files;
  }
  WARN(files << " golden files read");
}
