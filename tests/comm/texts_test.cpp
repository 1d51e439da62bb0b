// The words of errors, the environment variables, the hash that ranks compare.

#include <dtm/comm/wait.hpp>

#include "support/catch.hpp"

using namespace dtm::comm;
using dtm::testing::contains;

namespace {
call where(unsigned line) {
  return {"all_reduce", "dz", 0xabc, {"include/dtm/modules/transition.hpp", line}};
}
}  // namespace

TEST_CASE("a signature reads like a call") {
  CHECK(describe(make_signature(where(33), "cp0*cp1", 12, "fp32", 1024, "sum")) ==
        "all_reduce #12 on cp0*cp1 of \"dz\", 1024 x fp32, sum, layout 0000000000000abc, "
        "called at include/dtm/modules/transition.hpp:33");
}

TEST_CASE("every field of a signature changes its hash and is named where it differs") {
  auto const base = make_signature(where(33), "cp0", 1, "fp32", 8, "sum", 0);
  auto const other = [&base](char const* word, signature const& s) {
    CHECK(hash(s) != hash(base));
    CHECK(hash(s) >= 0);
    CHECK(differences(base, s) == word);
  };
  auto call_of = where(33);
  call_of.operation = "broadcast";
  other("operation", make_signature(call_of, "cp0", 1, "fp32", 8, "sum", 0));
  call_of = where(33), call_of.tensor = "dx";
  other("tensor", make_signature(call_of, "cp0", 1, "fp32", 8, "sum", 0));
  call_of = where(33), call_of.layout = 1;
  other("layout", make_signature(call_of, "cp0", 1, "fp32", 8, "sum", 0));
  other("call site", make_signature(where(34), "cp0", 1, "fp32", 8, "sum", 0));
  other("mesh axes", make_signature(where(33), "cp1", 1, "fp32", 8, "sum", 0));
  other("sequence number", make_signature(where(33), "cp0", 2, "fp32", 8, "sum", 0));
  other("element type", make_signature(where(33), "cp0", 1, "fp64", 8, "sum", 0));
  other("count", make_signature(where(33), "cp0", 1, "fp32", 9, "sum", 0));
  other("reduction", make_signature(where(33), "cp0", 1, "fp32", 8, "max", 0));
  other("root", make_signature(where(33), "cp0", 1, "fp32", 8, "sum", 1));
}

TEST_CASE("the table of a mismatch has the majority first") {
  auto const a = make_signature(where(33), "cp0", 1, "fp32", 8, "sum"),
             b = make_signature(where(33), "cp0", 1, "fp32", 9, "sum");
  signature const all[] = {b, a, a};
  int const ranks[] = {0, 2, 4};
  auto const text = mismatch_table(all, ranks);
  CHECK(text.find("ranks 2, 4: all_reduce #1 on cp0 of \"dz\", 8 x fp32") <
        text.find("rank 0: all_reduce"));
  CHECK_THAT(text, contains("differs in: count"));
}

TEST_CASE("paths that are too long lose their beginning") {
  std::string const path(500, 'd');
  std::string const file = path + "/end.hpp";
  call const who{"all_reduce", "", 0, {file.c_str(), 7}};
  CHECK_THAT(describe(make_signature(who, "cp0", 1, "fp32", 1)), contains("ddd/end.hpp:7"));
}

TEST_CASE("the hash sees every byte") {
  std::vector<unsigned char> data(67, 1);
  auto const base = hash_bytes(data.data(), data.size());
  for (auto& byte : data) {
    byte ^= 0x80;
    CHECK(hash_bytes(data.data(), data.size()) != base);
    byte ^= 0x80;
  }
  CHECK(hash_bytes(data.data(), 66) != base);
}

TEST_CASE("environment variables are read strictly") {
  auto const with = [](char const* deadline, char const* level) {
    setenv("DTM_DEADLINE", deadline, 1);
    setenv("DTM_CHECK_LEVEL", level, 1);
    return options::from_environment();
  };
  CHECK(with("2.5", "3").deadline_seconds == 2.5);
  CHECK(with("2.5", "3").level == check_level::data);
  CHECK(with("0", "").level == check_level::cheap);
  CHECK_THROWS_WITH(with("soon", "1"), contains("DTM_DEADLINE is \"soon\""));
  CHECK_THROWS_AS(with("-1", "1"), dtm::argument_error);
  CHECK_THROWS_AS(with("1", "4"), dtm::argument_error);
  CHECK_THROWS_AS(with("1", "1.5"), dtm::argument_error);
}

TEST_CASE("a deadline names the absent ranks and where the others are") {
  std::vector<std::optional<std::string>> answers{"waits in x", std::nullopt, std::nullopt};
  auto const text = dtm::comm::detail::deadline_text(
      2, make_signature(where(33), "cp0", 12, "fp32", 8, "sum"), answers);
  CHECK_THAT(text, contains("deadline of 2 s exceeded in all_reduce #12 on cp0") &&
                       contains("absent: ranks 1, 2 (") && contains("rank 0 waits in x") &&
                       contains("transition.hpp:33"));
  answers[1] = answers[2] = "waits in y";
  CHECK_THAT(
      dtm::comm::detail::deadline_text(2, make_signature(where(33), "cp0", 12, "fp32", 8), answers),
      contains("nobody is absent"));
}
