// The catalogue of bad safetensors files, S1 to S18: each case has its own message, which starts
// with the path and names the place; what the format allows must load.

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dtm/io/name_set.hpp"
#include "dtm/io/safetensors.hpp"
#include "dtm/io/safetensors_set.hpp"
#include "dtm/io/safetensors_writer.hpp"
#include "io/files.hpp"
#include "support/catch.hpp"

using namespace dtm;
using namespace dtm::testing;
using io::safetensors_file;

namespace {

struct bad_file {
  char const* id;
  std::string bytes;
  std::vector<std::string> fragments;  // all of them in the message
};

std::string one(std::string const& type, std::string const& shape, std::string const& offsets) {
  return "{" + tensor_field("a", type, shape, offsets) + "}";
}

std::string two(std::string const& offsets_a, std::string const& offsets_b) {
  return "{" + tensor_field("a", "\"I8\"", "[4]", offsets_a) + "," +
         tensor_field("b", "\"I8\"", "[4]", offsets_b) + "}";
}

std::string named(std::string const& name) {
  return "{" + tensor_field(name, "\"I8\"", "[2]", "[0,2]") + "}";
}

std::vector<bad_file> bad_files() {
  std::string const good = one("\"F32\"", "[2]", "[0,8]");
  std::string const u64 = "18446744073709551615";
  std::string const deep(100'000, '[');
  std::vector<bad_file> list = {
      // S1
      {"S1 empty", "", {"byte 0", "truncated", "has 0 bytes"}},
      {"S1 seven", "1234567", {"byte 7", "truncated", "has 7 bytes", "copy or write it again"}},
      // S2
      {"S2 zero",
       length_bytes(0),
       {"byte 0", "header length: the file says 0 bytes", "shortest header '{}' has 2"}},
      {"S2 one", length_bytes(1) + "{", {"header length: the file says 1 bytes"}},
      {"S2 beyond",
       length_bytes(3) + "{}",
       {"header length: the file says 3 bytes", "only 2 follow"}},
      {"S2 no header", length_bytes(2), {"header length: the file says 2 bytes", "only 0 follow"}},
      {"S2 100 MB",
       length_bytes(100'000'001) + "{}",
       {"says 100000001 bytes", "at most 100000000"}},
      {"S2 2^40",
       length_bytes(std::uint64_t{1} << 40) + "{}",
       {"says 1099511627776 bytes", "at most 100000000"}},
      {"S2 2^63", length_bytes(std::uint64_t{1} << 63) + "{}", {"says 9223372036854775808 bytes"}},
      {"S2 2^64-1", length_bytes(~std::uint64_t{0}) + "{}", {"says 18446744073709551615 bytes"}},
      {"S2 2^64-5",
       length_bytes(~std::uint64_t{0} - 4) + "{}",
       {"says 18446744073709551611 bytes"}},
      {"S2 torch zip",
       "PK\3\4 and the rest of a checkpoint",
       {"header length", "PyTorch checkpoint", "safetensors.torch.save_file"}},
      {"S2 pickle",
       "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 pickle",
       {"header length", "PyTorch checkpoint"}},
      {"S2 git-lfs", "version https://git-lfs.github.com/spec/v1\n", {"header length", "git-lfs"}},
      // S3
      {"S3 UTF-8", raw_file("{\"\xff\":1}"), {"byte 10", "header syntax", "not UTF-8"}},
      {"S3 overlong", raw_file("{\"\xc0\x80\":1}"), {"byte 10", "not UTF-8"}},
      {"S3 surrogate", raw_file("{\"\xed\xa0\x80\":1}"), {"byte 10", "not UTF-8"}},
      {"S3 cut UTF-8", raw_file("{\"\xe2\x82"), {"byte 10", "not UTF-8"}},
      {"S3 beyond Unicode", raw_file("{\"\xf4\x90\x80\x80\":1}"), {"byte 10", "not UTF-8"}},
      {"S3 not JSON",
       raw_file("{a}"),
       {"byte 9", "header syntax: the name of a tensor must be a string, found 'a'"}},
      {"S3 array",
       raw_file("[]"),
       {"byte 8", "header syntax: must start with '{', found an array"}},
      {"S3 blank first", raw_file(" {}"), {"byte 8", "must start with '{', found ' '"}},
      {"S3 text", raw_file("hello"), {"byte 8", "must start with '{', found 'h'"}},
      {"S3 not closed", raw_file("{ "), {"byte 10", "header syntax", "found the end"}},
      {"S3 cut in a name",
       raw_file("{\"ab"),
       {"header syntax: a string starts here and does not end"}},
      {"S3 cut in an escape", raw_file("{\"ab\\"), {"header syntax: a string does not end"}},
      {"S3 no colon",
       raw_file("{\"a\" 1}"),
       {"header syntax: after the name of a tensor: expected ':'"}},
      {"S3 comma at end",
       raw_file("{" + tensor_field("a", "\"I8\"", "[0]", "[0,0]") + ",}"),
       {"header syntax: the name of a tensor", "found '}'"}},
      {"S3 no comma",
       raw_file("{" + tensor_field("a", "\"I8\"", "[0]", "[0,0]") + " 1}"),
       {"header syntax: after a tensor: expected ',' or '}', found '1'"}},
      {"S3 control character",
       raw_file("{\"a\nb\":1}"),
       {"byte 11", "control character in a string, found '\\x0a'"}},
      {"S3 escape", raw_file("{\"\\x\":1}"), {"byte 10", "unknown escape"}},
      {"S3 short unicode escape",
       raw_file("{\"\\u12g4\":1}"),
       {"four hexadecimal digits, found 'g'"}},
      {"S3 lone high surrogate", raw_file("{\"\\ud800\":1}"), {"half of a surrogate pair"}},
      {"S3 lone low surrogate", raw_file("{\"\\udc00\":1}"), {"half of a surrogate pair"}},
      {"S3 two high surrogates", raw_file("{\"\\ud800\\ud800\":1}"), {"half of a surrogate pair"}},
      {"S3 text after", raw_file("{}x"), {"byte 10", "text after the closing '}', found 'x'"}},
      {"S3 second object", raw_file("{}{}"), {"text after the closing '}', found an object"}},
      {"S3 NUL padding",
       raw_file(std::string("{}\0\0", 4)),
       {"byte 10", "padded with NUL bytes", "correct writer"}},
      {"S3 leading zero",
       raw_file(one("\"I8\"", "[02]", "[0,2]"), 2),
       {"'02' is not a number in JSON"}},
      {"S3 plus", raw_file(one("\"I8\"", "[+2]", "[0,2]"), 2), {"'+2' is not a number in JSON"}},
      // S4
      {"S4 tensor",
       raw_file("{" + tensor_field("a", "\"I8\"", "[2]", "[0,2]") + "," +
                    tensor_field("b", "\"I8\"", "[0]", "[2,2]") + "," +
                    tensor_field("a", "\"I8\"", "[2]", "[0,2]") + "}",
                2),
       {"byte 114", "duplicate: tensor 'a' occurs twice"}},
      {"S4 escaped alike",
       raw_file("{" + tensor_field("a", "\"I8\"", "[2]", "[0,2]") + "," +
                    tensor_field("\\u0061", "\"I8\"", "[2]", "[2,4]") + "}",
                4),
       {"duplicate: tensor 'a' occurs twice"}},
      {"S4 dtype",
       raw_file("{\"a\":{\"dtype\":\"I8\",\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
       {"byte 27, tensor 'a'", "duplicate: field 'dtype'"}},
      {"S4 shape",
       raw_file("{\"a\":{\"shape\":[2],\"shape\":[2],\"dtype\":\"I8\",\"data_offsets\":[0,2]}}", 2),
       {"tensor 'a'", "duplicate: field 'shape'"}},
      {"S4 offsets",
       raw_file(
           "{\"a\":{\"data_offsets\":[0,2],\"data_offsets\":[0,2],\"shape\":[2],\"dtype\":\"I8\"}}",
           2),
       {"tensor 'a'", "duplicate: field 'data_offsets'"}},
      {"S4 metadata",
       raw_file("{\"__metadata__\":{},\"__metadata__\":{}}"),
       {"duplicate: '__metadata__' occurs twice"}},
      {"S4 metadata key",
       raw_file("{\"__metadata__\":{\"k\":\"1\",\"j\":\"1\",\"k\":\"2\"}}"),
       {"duplicate: metadata 'k' occurs twice"}},
      // S5
      {"S5 unknown",
       raw_file(one("\"F31\"", "[2]", "[0,8]"), 8),
       {"tensor 'a'", "dtype: 'F31' is unknown; known are F64, F32"}},
      {"S5 refused",
       raw_file(one("\"F8_E4M3\"", "[2]", "[0,2]"), 2),
       {"tensor 'a'", "dtype: 'F8_E4M3' is not supported; convert"}},
      {"S5 unsigned",
       raw_file(one("\"U64\"", "[1]", "[0,8]"), 8),
       {"dtype: 'U64' is not supported"}},
      {"S5 lower case", raw_file(one("\"f32\"", "[2]", "[0,8]"), 8), {"dtype: 'f32' is unknown"}},
      {"S5 empty", raw_file(one("\"\"", "[2]", "[0,8]"), 8), {"dtype: '' is unknown"}},
      {"S5 number",
       raw_file(one("32", "[2]", "[0,8]"), 8),
       {"dtype: the type must be a string, found '3'"}},
      {"S5 missing",
       raw_file("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
       {"tensor 'a'", "dtype: missing"}},
      // S6
      {"S6 negative",
       raw_file(one("\"F32\"", "[-1]", "[0,8]"), 8),
       {"tensor 'a'", "shape: an extent is negative: '-1'"}},
      {"S6 float",
       raw_file(one("\"F32\"", "[2.0]", "[0,8]"), 8),
       {"shape: an extent is '2.0', must be a whole number"}},
      {"S6 exponent", raw_file(one("\"F32\"", "[2e0]", "[0,8]"), 8), {"shape: an extent is '2e0'"}},
      {"S6 2^64-1",
       raw_file(one("\"F32\"", "[" + u64 + "]", "[0,8]"), 8),
       {"shape: an extent is '18446744073709551615', must be below 2^63"}},
      {"S6 2^63",
       raw_file(one("\"F32\"", "[9223372036854775808]", "[0,8]"), 8),
       {"shape: an extent is '9223372036854775808', must be below 2^63"}},
      {"S6 string",
       raw_file(one("\"F32\"", "[\"2\"]", "[0,8]"), 8),
       {"shape: an extent must be a whole number, found a string"}},
      {"S6 null",
       raw_file(one("\"F32\"", "null", "[0,8]"), 8),
       {"shape: an array: expected '[', found 'n'"}},
      {"S6 object",
       raw_file(one("\"F32\"", "{}", "[0,8]"), 8),
       {"shape: an array: expected '[', found an object"}},
      {"S6 not closed",
       raw_file(one("\"F32\"", "[2:", "[0,8]"), 8),
       {"shape: after an extent", "expected ',' or ']'"}},
      {"S6 comma at end",
       raw_file(one("\"F32\"", "[2,]", "[0,8]"), 8),
       {"shape: an extent must be a whole number, found ']'"}},
      {"S6 missing",
       raw_file("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8),
       {"tensor 'a'", "shape: missing"}},
      {"S6 dimensions",
       raw_file(one("\"I8\"", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                    "[0,1]"),
                1),
       {"shape: more than 32 dimensions"}},
      // S7
      {"S7 overflow",
       raw_file(one("\"F32\"", "[4294967296,4294967296]", "[0,8]"), 8),
       {"tensor 'a'", "overflow: shape [4294967296, 4294967296] of F32"}},
      {"S7 wraps to 0", raw_file(one("\"I8\"", "[4294967296,4294967296]", "[0,0]")), {"overflow"}},
      {"S7 by the type alone",
       raw_file(one("\"F64\"", "[2305843009213693952]", "[0,8]"), 8),
       {"overflow"}},
      {"S7 hidden by a zero",
       raw_file(one("\"I8\"", "[0,4294967296,4294967296]", "[0,0]")),
       {"overflow"}},
      {"S7 zero last", raw_file(one("\"I8\"", "[4294967296,4294967296,0]", "[0,0]")), {"overflow"}},
      // S8
      {"S8 reversed",
       raw_file(one("\"F32\"", "[2]", "[8,0]"), 8),
       {"tensor 'a'", "offsets: [8, 0) are reversed"}},
      {"S8 overlap",
       raw_file(two("[0,4]", "[2,6]"), 6),
       {"tensor 'b'", "offsets: [2, 6) overlap another tensor, whose data ends at 4"}},
      {"S8 same bytes", raw_file(two("[0,4]", "[0,4]"), 4), {"offsets: [0, 4) overlap"}},
      {"S8 hole",
       raw_file(two("[0,4]", "[6,10]"), 10),
       {"tensor 'b'", "offsets: [6, 10) leave a hole after 4"}},
      {"S8 hole at the start",
       raw_file(one("\"I8\"", "[2]", "[1,3]"), 3),
       {"tensor 'a'", "offsets: [1, 3) leave a hole after 0"}},
      {"S8 empty tensor inside",
       raw_file("{" + tensor_field("a", "\"I8\"", "[4]", "[0,4]") + "," +
                    tensor_field("b", "\"I8\"", "[0]", "[2,2]") + "}",
                4),
       {"tensor 'b'", "overlap"}},
      {"S8 beyond the end",
       raw_file(two("[0,4]", "[6,10]"), 8),
       {"tensor 'b'", "offsets: [6, 10) lie beyond the end of the data, which has 8 bytes"}},
      {"S8 size too small",
       raw_file(one("\"F32\"", "[2]", "[0,4]"), 4),
       {"offsets: [0, 4) hold 4 bytes, but shape [2] of F32 needs 8"}},
      {"S8 size too large",
       raw_file(one("\"F32\"", "[]", "[0,8]"), 8),
       {"hold 8 bytes, but shape [] of F32 needs 4"}},
      {"S8 one number",
       raw_file(one("\"F32\"", "[2]", "[8]"), 8),
       {"offsets: data_offsets is [begin, end]: expected ',', found ']'"}},
      {"S8 three numbers",
       raw_file(one("\"F32\"", "[2]", "[0,8,8]"), 8),
       {"offsets: data_offsets is [begin, end]: expected ']', found ','"}},
      {"S8 negative begin",
       raw_file(one("\"F32\"", "[2]", "[-8,0]"), 8),
       {"offsets: the begin of the data is negative"}},
      {"S8 float end",
       raw_file(one("\"F32\"", "[2]", "[0,8.5]"), 8),
       {"offsets: the end of the data is '8.5'"}},
      {"S8 huge end",
       raw_file(one("\"F32\"", "[2]", "[0," + u64 + "]"), 8),
       {"offsets: the end of the data is '18446744073709551615'"}},
      {"S8 no array",
       raw_file(one("\"F32\"", "[2]", "8"), 8),
       {"offsets: data_offsets: expected '['"}},
      {"S8 missing",
       raw_file("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8),
       {"tensor 'a'", "offsets: data_offsets is missing"}},
      // S9
      {"S9 short",
       raw_file(good, 7),
       {"size: the header describes 8 bytes of data, the file has 7", "truncated"}},
      {"S9 no data",
       raw_file(good),
       {"size: the header describes 8 bytes of data, the file has 0", "truncated"}},
      {"S9 trailing",
       raw_file(good, 9),
       {"size: the header describes 8 bytes of data, the file has 9", "after the last tensor"}},
      {"S9 no tensors",
       raw_file("{}", 1),
       {"size: the header describes 0 bytes of data, the file has 1"}},
      // S12
      {"S12 number",
       raw_file("{\"__metadata__\":{\"k\":1}}"),
       {"'__metadata__'", "header: metadata: a value must be a string, found '1'"}},
      {"S12 object",
       raw_file("{\"__metadata__\":{\"k\":{}}}"),
       {"header: metadata: a value must be a string, found an object", "no deeper nesting"}},
      {"S12 null",
       raw_file("{\"__metadata__\":{\"k\":null}}"),
       {"header: metadata: a value must be a string, found 'n'"}},
      {"S12 array",
       raw_file("{\"__metadata__\":[]}"),
       {"header: metadata: expected '{', found an array"}},
      {"S12 key",
       raw_file("{\"__metadata__\":{1:\"k\"}}"),
       {"header: metadata: a name must be a string"}},
      {"S12 no colon",
       raw_file("{\"__metadata__\":{\"k\" \"v\"}}"),
       {"after a name in metadata: expected ':'"}},
      {"S12 not closed",
       raw_file("{\"__metadata__\":{\"k\":\"v\" \"l\"}}"),
       {"after a value in metadata: expected ',' or '}'"}},
      // S13
      {"S13 arrays as a tensor",
       raw_file("{\"a\":" + deep),
       {"header: a tensor: expected '{', found an array", "no deeper nesting"}},
      {"S13 arrays in a shape",
       raw_file("{\"a\":{\"shape\":" + deep),
       {"shape: an extent", "found an array", "no deeper nesting"}},
      {"S13 objects",
       raw_file(
           [] {
             std::string text;
             for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
             return text;
           }()),
       {"unknown field 'a'"}},
      {"S13 unknown field",
       raw_file("{\"a\":{\"note\":" + deep),
       {"tensor 'a'", "header: unknown field 'note'"}},
      // S14
      {"S14 NUL",
       raw_file(named("a\\u0000b"), 2),
       {"byte 9", "name: the tensor name 'a\\x00b' contains a NUL byte"}},
      {"S14 slash",
       raw_file(named("../a"), 2),
       {"name: the tensor name '../a' contains a slash", "rename"}},
      {"S14 backslash", raw_file(named("a\\\\b"), 2), {"contains a slash"}},
      {"S14 control",
       raw_file(named("a\\u0007"), 2),
       {"name: the tensor name 'a\\x07' contains a control character"}},
      {"S14 empty", raw_file(named(""), 2), {"name: the tensor name '' is empty"}},
      {"S14 10 MB",
       raw_file(named(std::string(10'000'000, 'x')), 2),
       {"name: the tensor name 'xxx", "has 10000000 bytes, at most 1024"}},
  };
  return list;
}

std::string open_error(std::string const& path) {
  return file_error_of([&] { safetensors_file::open(path); });
}

}  // namespace

TEST_CASE("every bad safetensors file has its own message") {
  temporary_folder folder;
  std::string const path = folder / "bad.safetensors";
  for (bad_file const& bad : bad_files()) {
    put(path, bad.bytes);
    std::string const message = open_error(path);
    INFO(bad.id << ": " << message);
    CHECK(message.starts_with(path + ": "));
    CHECK(message.size() < path.size() + 600);
    for (std::string const& fragment : bad.fragments) CHECK_THAT(message, contains(fragment));
  }
}

TEST_CASE("every bad safetensors file names its byte or its tensor") {
  temporary_folder folder;
  std::string const path = folder / "bad.safetensors";
  for (bad_file const& bad : bad_files()) {
    put(path, bad.bytes);
    std::string const message = open_error(path);
    INFO(bad.id << ": " << message);
    CHECK(message.substr(path.size() + 2).starts_with("byte "));
  }
}

TEST_CASE("paths that are no files are refused") {
  temporary_folder folder;
  CHECK_THAT(open_error(folder / "absent"), contains("cannot be opened: No such file"));
  CHECK_THAT(open_error(folder.path()), contains("is not a regular file"));
  CHECK_THAT(open_error("/dev/null"), contains("is not a regular file"));
  CHECK_THAT(open_error(std::string("a\0b", 3)),
             contains("'a\\x00b': a path cannot contain a NUL byte"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(open_error(folder / "pipe"),
             contains("is not a regular file"));  // and does not wait for a writer
}

TEST_CASE("what the format allows loads: S10, S11 and blanks") {
  temporary_folder folder;
  std::string const path = folder / "good.safetensors";
  SECTION("no tensors") {
    put(path, raw_file("{}"));
    CHECK(safetensors_file::open(path).entries().empty());
  }
  SECTION("blanks, tabs and line ends pad a header and separate its parts") {
    put(path, raw_file("{ \"a\" :\t{\n\"data_offsets\" : [ 0 , 2 ] , \"shape\":[ 2 "
                       "],\"dtype\":\"I8\" } }  \t\r\n",
                       2));
    CHECK(safetensors_file::open(path).read<std::int8_t>("a") == std::vector<std::int8_t>{0, 1});
  }
  SECTION("S10: data that is misaligned in the file") {
    std::string bytes = raw_file("{" + tensor_field("m", "\"BOOL\"", "[3]", "[0,3]") + "," +
                                 tensor_field("x", "\"F64\"", "[2]", "[3,19]") + "}");
    std::array<double, 2> const x = {1.5, -2.25};
    bytes += std::string("\1\0\1", 3) + std::string(reinterpret_cast<char const*>(x.data()), 16);
    put(path, bytes);
    auto const file = safetensors_file::open(path);
    CHECK(file.read<double>("x") == std::vector<double>{1.5, -2.25});
    CHECK(file.read<std::uint8_t>("m") == std::vector<std::uint8_t>{1, 0, 1});
    CHECK(file.read_as<double>("m") == std::vector<double>{1, 0, 1});
  }
  SECTION("S11: 0-d and empty tensors, several at one offset") {
    put(path, raw_file("{" + tensor_field("e", "\"F32\"", "[0]", "[4,4]") + "," +
                           tensor_field("s", "\"F32\"", "[]", "[0,4]") + "," +
                           tensor_field("f", "\"F32\"", "[3,0,2]", "[0,0]") + "," +
                           tensor_field("g", "\"I8\"", "[0]", "[4,4]") + "}",
                       4));
    auto const file = safetensors_file::open(path);
    CHECK(file.names() == std::vector<std::string>{"e", "s", "f", "g"});
    CHECK(file.at("s").shape.empty());
    CHECK(file.read<float>("s").size() == 1);
    CHECK(file.read<float>("e").empty());
    CHECK(file.at("f").shape == std::vector<std::int64_t>{3, 0, 2});
    CHECK(file.read<float>("f").empty());
  }
  SECTION("names and metadata with escapes") {
    put(path,
        raw_file("{\"__metadata__\":{\"a\\n\\t\\\"\":\"\\u20ac\\ud83d\\ude00\\u00e9\",\"\":\"\"},"
                 "\"\xc3\xa9\\u00e9\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[0,1]}}",
                 1));
    auto const file = safetensors_file::open(path);
    CHECK(file.metadata("a\n\t\"") == "\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9");
    CHECK(file.metadata("") == "");
    CHECK(!file.metadata("b"));
    CHECK(file.contains("\xc3\xa9\xc3\xa9"));
  }
}

TEST_CASE("asking a file for what it does not have") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  put(path, raw_file("{" + tensor_field("a", "\"I8\"", "[4]", "[0,4]") + "," +
                         tensor_field("b", "\"BOOL\"", "[2]", "[4,6]") + "," +
                         tensor_field("c", "\"I64\"", "[1]", "[6,14]") + "}",
                     14));
  auto const file = safetensors_file::open(path);
  auto const error = [](auto&& risky) { return file_error_of(risky); };
  CHECK_THAT(
      error([&] { file.at("x"); }),
      contains(path +
               ": tensor 'x': names: not in the file, which holds 3 tensors: 'a', 'b', 'c'"));
  CHECK_THAT(error([&] { file.read<float>("a"); }),
             contains("tensor 'a': dtype: the file has I8, the program reads F32"));
  CHECK_THAT(error([&] { file.read<std::uint8_t>("a"); }),
             contains("dtype: the file has I8, the program reads U8"));
  CHECK_THAT(error([&] { file.read_as<double>("c"); }),
             contains("tensor 'c': dtype: I64 does not convert to float64 without loss"));
  CHECK_THAT(error([&] { file.read_as<std::uint8_t>("a"); }),
             contains("I8 does not convert to uint8"));
  CHECK_THAT(error([&] { file.read_slice<std::int8_t>("a", 1, 4); }),
             contains("slice: elements [1, +4) of 4"));
  CHECK_THAT(error([&] { file.read_slice<std::int8_t>("a", -1, 2); }),
             contains("slice: elements [-1, +2) of 4"));
  CHECK_THAT(error([&] { file.read_slice<std::int8_t>("a", 5, 0); }), contains("slice"));
  CHECK_THAT(error([&] { file.read_slice<std::int8_t>("a", 0, -1); }), contains("slice"));
  CHECK(file.read_slice<std::int8_t>("a", 1, 2) == std::vector<std::int8_t>{1, 0});
  put(path, raw_file("{" + tensor_field("m", "\"BOOL\"", "[2]", "[0,2]") + "}") + "\1\2");
  CHECK_THAT(error([&] { safetensors_file::open(path).read<std::uint8_t>("m"); }),
             contains("tensor 'm': value: 2 in a BOOL tensor, must be 0 or 1"));
}

TEST_CASE("S15: a file that changes while it is open is an error") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  std::string const bytes =
      raw_file("{" + tensor_field("a", "\"I8\"", "[8192]", "[0,8192]") + "}", 8192);
  put(path, bytes);
  auto const file = safetensors_file::open(path);
  auto const read = [&] { return file_error_of([&] { file.read<std::int8_t>("a"); }); };
  SECTION("truncated") {
    std::filesystem::resize_file(path, 100);
    CHECK_THAT(read(), contains(path + ": byte 100, tensor 'a': the file ends here, but had " +
                                std::to_string(bytes.size())));
    CHECK_THAT(file_error_of([&] { file.hash(); }), contains("truncated meanwhile"));
  }
  SECTION("grown") {
    std::ofstream(path, std::ios::app) << "more";
    CHECK_THAT(read(), contains("tensor 'a': the file changed while it was open"));
  }
  SECTION("rewritten in place with equal length") {
    put(path, bytes);
    std::filesystem::last_write_time(
        path, std::filesystem::last_write_time(path) + std::chrono::seconds(2));
    CHECK_THAT(read(), contains("the file changed while it was open"));
  }
  SECTION("replaced by another file: the opened one is read") {
    put(folder / "b", std::string(bytes.size(), 'x'));
    std::filesystem::rename(folder / "b", path);
    CHECK(read() == "");
    CHECK(file.read<std::int8_t>("a").back() == 1);
  }
}

TEST_CASE("S16: names and shapes are compared in both directions") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  put(path, raw_file("{" + tensor_field("a", "\"I8\"", "[2,3]", "[0,6]") + "," +
                         tensor_field("b", "\"I8\"", "[4]", "[6,10]") + "}",
                     10));
  auto const file = safetensors_file::open(path);
  auto const compare = [&](std::vector<io::named_shape> const& expected) {
    return file_error_of([&] { io::require_same_names(expected, file); });
  };
  CHECK(compare({{"b", {4}}, {"a", {2, 3}}}) == "");
  CHECK_THAT(compare({{"a", {2, 3}}, {"b", {4}}, {"c", {5}}}),
             contains(path + ": names: the file does not fit the program; missing: 'c' [5];"));
  CHECK_THAT(compare({{"a", {2, 3}}}), contains("; extra: 'b' [4];"));
  CHECK_THAT(compare({{"a", {2, 4}}, {"b", {4}}}),
             contains("; wrong shape: 'a' is [2, 3], needed is [2, 4];"));
  CHECK_THAT(compare({{"a", {2, 3}}, {"b", {4, 1}}}),
             contains("; wrong shape: 'b' is [4], needed is [4, 1];"));
  CHECK_THAT(compare({{"a", {3, 2}}, {"b", {4}}}),
             contains("; transposed: 'a' is [2, 3], needed is [3, 2];"));
  std::string const all = compare({{"c", {1}}, {"a", {3, 2}}});
  for (char const* fragment : {"missing: 'c'", "extra: 'b'", "transposed: 'a'"})
    CHECK_THAT(all, contains(fragment));
  std::vector<io::named_shape> many;
  for (int i = 0; i < 20; ++i) many.push_back({"t" + std::to_string(i), {1}});
  CHECK_THAT(compare(many), contains("'t7' [1] and 12 more; extra:"));
}

TEST_CASE("S18: an indexed set is complete and lies in one folder") {
  temporary_folder folder;
  std::string const path = folder / "model.safetensors.index.json";
  put(folder / "one", raw_file(named("a"), 2));
  put(folder / "two", raw_file("{" + tensor_field("b", "\"I8\"", "[1]", "[0,1]") + "," +
                                   tensor_field("c", "\"I8\"", "[1]", "[1,2]") + "}",
                               2));
  put(folder / "bad", raw_file(named("d"), 1));
  auto const message = [&](std::string const& map, std::string const& rest = "") {
    put(path, "{\"metadata\":{\"total_size\":4,\"x\":[1.5,{\"y\":null}]},\"weight_map\":{" + map +
                  "}" + rest + "}\n");
    return file_error_of([&] { io::safetensors_set::open(path); });
  };
  std::string const good = "\"b\":\"two\",\"a\":\"one\",\"c\":\"two\"";
  REQUIRE(message(good) == "");
  auto const set = io::safetensors_set::open(path);
  CHECK(set.files().size() == 2);
  CHECK(set.file_of("c").read<std::int8_t>("c") == std::vector<std::int8_t>{1});
  CHECK_THAT(file_error_of([&] { set.file_of("x"); }),
             contains(path + ": tensor 'x': names: not in the index"));

  CHECK_THAT(message(good + ",\"z\":\"three\""),
             contains("index: the file 'three' of the set is missing; copy all"));
  for (char const* outside :
       {"../one", "/etc/passwd", "..", ".", "sub/one", "", "a\\\\b", "one\\u0000"}) {
    INFO(outside);
    CHECK_THAT(message("\"a\":\"" + std::string(outside) + "\""),
               contains("is refused; files of a set lie in the folder of the index"));
  }
  CHECK_THAT(message(good + ",\"d\":\"two\""),
             contains("index: tensor 'd' is not in 'two'; index and files are of different sets"));
  CHECK_THAT(message("\"a\":\"one\",\"b\":\"two\""),
             contains("tensor 'c': index: not assigned to"));
  CHECK_THAT(message(good + ",\"a\":\"one\""), contains("duplicate: tensor 'a' occurs twice"));
  CHECK_THAT(message(good + ",\"b\":\"one\""), contains("duplicate: tensor 'b' occurs twice"));
  CHECK_THAT(message("\"d\":\"bad\""), contains(folder / "bad" + ": byte "));
  CHECK_THAT(message("\"a\":1"), contains("index: the name of a file must be a string"));
  CHECK_THAT(message(good, ",\"weight_map\":{}"), contains("duplicate: field 'weight_map'"));
  CHECK_THAT(message(good, ",\"more\":{}"), contains("index: unknown field 'more'"));
  CHECK_THAT(message("\"a/b\":\"one\""), contains("name: the tensor name 'a/b' contains a slash"));
  auto const raw = [&](std::string const& text) {
    put(path, text);
    return file_error_of([&] { io::safetensors_set::open(path); });
  };
  CHECK_THAT(raw(""), contains("byte 0: index syntax: must start with '{'"));
  CHECK_THAT(raw("{\"metadata\":{}}"), contains("index: weight_map is missing"));
  CHECK_THAT(raw("{\"metadata\":" + std::string(100'000, '[')),
             contains("index syntax: nested too deeply"));
  CHECK_THAT(raw("{\"metadata\":nul}"), contains("index syntax: expected a value, found 'nul'"));
  CHECK_THAT(raw("{\"metadata\":"), contains("index syntax: expected a value, found the end"));
  CHECK_THAT(raw("{\"weight_map\":[]}"),
             contains("index: weight_map: expected '{', found an array"));
  CHECK_THAT(raw("{\"weight_map\":{}} x"), contains("index syntax: text after the closing '}'"));
  CHECK(raw("{\"weight_map\":{}}") == "");

  std::filesystem::resize_file(path, 100'000'001);
  CHECK_THAT(file_error_of([&] { io::safetensors_set::open(path); }),
             contains("index length: 100000001 bytes, at most 100000000"));
  std::string map;
  for (int i = 0; i <= 500; ++i) {
    std::string const name = "t" + std::to_string(i);
    put(folder / name, raw_file(named(name), 2));
    map += (i ? ",\"" : "\"") + name + "\":\"" + name + "\"";
  }
  CHECK_THAT(message(map), contains("index: more than 500 files"));
}
