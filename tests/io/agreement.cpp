// Errors of files on some of the ranks are the same error on all: type and text. S17: one path, two
// contents.

#include "dtm/io/agreement.hpp"

#include "dtm/io/safetensors_writer.hpp"
#include "io/files.hpp"
#include "support/catch.hpp"
#include "support/runner.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

std::string const header = "{" + tensor_field("a", "\"I8\"", "[4]", "[0,4]") + "}";

/// Name of the type and text of what `risky` throws.
template <class F>
std::string thrown_by(F&& risky) {
  try {
    risky();
  } catch (file_error const& error) {
    return std::string("file_error ") + error.what();
  } catch (replication_error const& error) {
    return std::string("replication_error ") + error.what();
  }
  return "nothing";
}

void check_same_everywhere(std::string const& text) {
  std::uint64_t const hash = io::hash_of(std::as_bytes(std::span(text)));
  io::require_same_everywhere(world(), hash, "text of an error");
}

}  // namespace

TEST_CASE("a file that only some ranks can open is one error on all ranks") {
  temporary_folder folder;  // its own on every rank
  std::string const path = folder / "a.safetensors";
  bool const last = rank() == ranks() - 1;
  std::string const good = raw_file(header, 4);
  for (int round = 0; round < 4; ++round) {
    std::filesystem::remove(path);
    if (!last || round == 0) put(path, good);
    if (last && round == 1) put(path, good.substr(0, good.size() - 1));
    if (last && round == 2) put(path, "PK\3\4 and more");
    std::string const text = thrown_by([&] {
      auto const file = io::open_on_all_ranks(world(), path);
      CHECK(file.read<std::int8_t>("a").size() == 4);
    });
    INFO(text);
    if (round == 0) {
      CHECK(text == "nothing");
      continue;
    }
    CHECK_THAT(text, contains("file_error /"));
    CHECK_THAT(text, contains("/a.safetensors: "));
    CHECK_THAT(text, contains(round == 1   ? "size: the header describes 4"
                              : round == 2 ? "PyTorch"
                                           : "cannot be opened"));
    if (ranks() > 1) CHECK_THAT(text, contains("rank " + std::to_string(ranks() - 1)));
    check_same_everywhere(text);
  }
}

TEST_CASE("S17: a file with other content on one rank is a replication error on all ranks") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  std::string bytes = raw_file(header, 4);
  put(path, bytes);
  io::require_same_content(world(), io::open_on_all_ranks(world(), path));
  for (int odd = 0; odd < ranks(); ++odd) {
    if (ranks() == 1) break;
    bytes.back() = rank() == odd ? '\2' : '\1';
    std::filesystem::remove(path);
    put(path, bytes);
    auto const file = io::open_on_all_ranks(world(), path);
    std::string const text = thrown_by([&] { io::require_same_content(world(), file); });
    CHECK_THAT(text, contains("replication_error /"));
    CHECK_THAT(text, contains("/a.safetensors: the content differs between ranks: hash "));
    CHECK_THAT(text, contains("on rank " + std::to_string(odd == 0 ? 1 : odd) + ", "));
    CHECK_THAT(text, contains("give every rank the same file"));
    check_same_everywhere(text);
  }
}
