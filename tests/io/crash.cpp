// The writer interrupted at every step, by an error and by the end of the process: whoever reads
// afterwards finds the old content or the new one, complete.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dtm/io/safetensors.hpp"
#include "dtm/io/safetensors_writer.hpp"
#include "io/files.hpp"
#include "support/catch.hpp"

using namespace dtm;
using namespace dtm::testing;

namespace {

enum class fault { none, error, end_before, end_after };

/// The system, with a fault at step `at` (counted from 1) and a record of the steps. Writes are cut
/// in pieces, so that there are many, and the first piece of a failing write still reaches the
/// file.
struct faulty_system {
  fault kind = fault::none;
  int at = 0;
  int code = ENOSPC;
  int step = 0;
  std::vector<std::string> steps{};

  template <class F>
  auto perform(char const* name, F&& call) -> decltype(call()) {
    steps.push_back(name);
    bool const here = ++step == at;
    if (here && kind == fault::end_before) ::_exit(0);
    if (here && kind == fault::error) {
      errno = code;
      return -1;
    }
    auto const result = call();
    if (here && kind == fault::end_after) ::_exit(0);
    return result;
  }
  int create(char const* path) {
    return perform("create", [&] { return real.create(path); });
  }
  int open_folder(char const* path) {
    return perform("open folder", [&] { return real.open_folder(path); });
  }
  ssize_t write(int file, void const* data, std::size_t count) {
    return perform("write",
                   [&] { return real.write(file, data, std::min<std::size_t>(count, 100)); });
  }
  int synchronise(int file) {
    return perform("synchronise", [&] { return real.synchronise(file); });
  }
  int close(int file) {
    return perform("close", [&] { return real.close(file); });
  }
  int rename(char const* from, char const* to) {
    return perform("rename", [&] { return real.rename(from, to); });
  }
  int remove(char const* path) {
    return perform("remove", [&] { return real.remove(path); });
  }

  io::detail::system_calls real{};
};

std::vector<double> const old_values(40, 1.0), new_values(60, 2.0);

void write(faulty_system& system, std::string const& path, std::vector<double> const& values) {
  auto const count = static_cast<std::int64_t>(values.size());
  std::vector<io::tensor_to_write> const tensors = {
      io::to_write("a", {count}, std::span<double const>(values)),
      io::to_write("b", {2, count / 2}, std::span<double const>(values))};
  io::detail::write_safetensors(system, path, tensors, {{"step", std::to_string(count)}});
}

enum class content { absent, old_one, new_one, mixed };

content content_of(std::string const& path) {
  if (!std::filesystem::exists(path)) return content::absent;
  auto const file = io::safetensors_file::open(path);
  auto const a = file.read<double>("a"), b = file.read<double>("b");
  if (a == old_values && b == old_values && file.metadata("step") == "40") return content::old_one;
  if (a == new_values && b == new_values && file.metadata("step") == "60") return content::new_one;
  return content::mixed;
}

std::vector<std::string> steps_of_a_write(std::string const& path) {
  faulty_system system;
  write(system, path, new_values);
  return system.steps;
}

long files_in(std::string const& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

}  // namespace

TEST_CASE("the steps of a write come in the order that survives a loss of power") {
  temporary_folder folder;
  std::vector<std::string> steps = steps_of_a_write(folder / "a.safetensors");
  CHECK(std::count(steps.begin(), steps.end(), "write") > 5);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  CHECK(steps == std::vector<std::string>{"create", "write", "synchronise", "close", "rename",
                                          "open folder", "synchronise", "close"});
}

TEST_CASE("an error at any step leaves the old file or the new one, and nothing else") {
  for (bool const existed : {true, false}) {
    temporary_folder folder;
    std::string const path = folder / "a.safetensors";
    auto const steps = steps_of_a_write(path);
    int const last = static_cast<int>(steps.size()) - 1;  // closing the folder cannot lose anything
    for (int at = 1; at <= last; ++at) {
      std::filesystem::remove(path);
      faulty_system good;
      if (existed) write(good, path, old_values);
      faulty_system system{fault::error, at};
      std::string const message = file_error_of([&] { write(system, path, new_values); });
      INFO("step " << at << ", " << steps[static_cast<std::size_t>(at - 1)] << ": " << message);
      CHECK(message.starts_with(path + ": writing: "));
      CHECK_THAT(message, contains("No space left on device"));
      content const now = content_of(path);
      bool const renamed =
          std::find(system.steps.begin(), system.steps.end(), "open folder") != system.steps.end();
      CHECK(now == (renamed ? content::new_one : existed ? content::old_one : content::absent));
      CHECK_THAT(message, contains(renamed ? "the new content is in place" : "is unchanged"));
      CHECK(files_in(folder.path()) == (now == content::absent ? 0 : 1));
    }
  }
}

TEST_CASE("an interrupted write goes on, and folders without synchronisation are accepted") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  auto const steps = steps_of_a_write(path);
  for (int at = 1; at <= static_cast<int>(steps.size()); ++at) {
    bool const writes = steps[static_cast<std::size_t>(at - 1)] == "write";
    bool const folder_synchronised = at == static_cast<int>(steps.size()) - 1;
    if (!writes && !folder_synchronised) continue;
    faulty_system system{fault::error, at, writes ? EINTR : EINVAL};
    write(system, path, new_values);
    CHECK(content_of(path) == content::new_one);
  }
}

TEST_CASE("a process that ends at any step leaves the old file or the new one") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors";
  auto const steps = steps_of_a_write(path);
  for (fault kind : {fault::end_before, fault::end_after}) {
    for (int at = 1; at <= static_cast<int>(steps.size()); ++at) {
      faulty_system good;
      write(good, path, old_values);
      pid_t const child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        faulty_system system{kind, at};
        try {
          write(system, path, new_values);
        } catch (...) {
        }
        ::_exit(1);  // the fault did not come
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      INFO("step " << at << ", " << steps[static_cast<std::size_t>(at - 1)]);
      CHECK(status == 0);
      auto const rename = std::find(steps.begin(), steps.end(), "rename") - steps.begin() + 1;
      bool const renamed = at > rename || (at == rename && kind == fault::end_after);
      CHECK(content_of(path) == (renamed ? content::new_one : content::old_one));
    }
  }
  faulty_system good;  // what the dead left behind is in nobody's way
  write(good, path, new_values);
  CHECK(content_of(path) == content::new_one);
}

TEST_CASE("a partial file of the same name is not touched") {
  temporary_folder folder;
  std::string const path = folder / "a.safetensors",
                    partial = path + ".partial-" + std::to_string(::getpid()) + "-0";
  put(partial, "somebody else's");
  faulty_system system;
  write(system, path, new_values);
  CHECK(content_of(path) == content::new_one);
  CHECK(get(partial) == "somebody else's");
}
