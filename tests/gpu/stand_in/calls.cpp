#include "calls.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "arena.hpp"
#include "queue.hpp"
#include "stand_in.hpp"

namespace stand_in {
namespace {

double number_from(char const* name, double otherwise) {
  char const* const text = std::getenv(name);
  if (!text || !*text) return otherwise;
  char* end = nullptr;
  double const value = std::strtod(text, &end);
  if (*end || value < 0) die(std::string(name) + " is not a number: " + text);
  return value;
}

struct planted {
  int calls_before;  // that still succeed
  int code;
};

struct state {
  std::map<std::string, std::int64_t, std::less<>> calls;
  std::multimap<std::string, planted, std::less<>> planted_failures;
  cudaError_t last = cudaSuccess;
  cudaError_t broken = cudaSuccess;
  int waits_to_drop = 0, records_to_drop = 0, messages_to_corrupt = 0;
};
state& the() {
  static auto* const only = new state;
  return *only;
}

bool take_one(int& count) {
  if (count == 0) return false;
  --count;
  return true;
}

}  // namespace

settings& the_settings() {
  static settings only = {std::uint64_t(number_from("DTM_STAND_IN_SEED", 0)),
                          int(number_from("DTM_STAND_IN_DEVICES", 1)),
                          std::size_t(number_from("DTM_STAND_IN_MEMORY", 16384)) << 20,
                          number_from("DTM_STAND_IN_PATIENCE", 60)};
  return only;
}

void die(std::string const& sentence) {
  std::fprintf(stderr, "stand-in: %s\n", sentence.c_str());
  std::abort();
}

int entered(char const* function) {
  std::string name = function;  // the headers rename some functions: cublasCreate_v2
  if (auto const suffix = name.rfind("_v2"); suffix != std::string::npos) name.resize(suffix);
  host_is_alive();
  ++the().calls[name];
  auto [first, last] = the().planted_failures.equal_range(name);
  int code = 0;
  for (auto entry = first; entry != last;) {
    if (entry->second.calls_before-- == 0) {
      code = entry->second.code;
      entry = the().planted_failures.erase(entry);
    } else {
      ++entry;
    }
  }
  return code;
}

cudaError_t cuda_entered(char const* function) {
  if (int const code = entered(function)) return cudaError_t(code);
  if (an_operation_runs()) return cudaErrorNotPermitted;  // as a real host function may not
  return the().broken;
}

cudaError_t returned(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) the().last = error;
  return error;
}

cudaError_t broken_device() {
  return the().broken;
}

void break_device(cudaError_t error) {
  if (the().broken == cudaSuccess) the().broken = error;
}

void forget_calls() {
  the() = {};
}

bool drop_this_wait() {
  return take_one(the().waits_to_drop);
}
bool drop_this_record() {
  return take_one(the().records_to_drop);
}
bool corrupt_this_message() {
  return take_one(the().messages_to_corrupt);
}

// ---- the public switches -------------------------------------------------------------------------

void set_last_error(cudaError_t error) {
  returned(error);
}

std::int64_t calls(std::string const& function) {
  auto const found = the().calls.find(function);
  return found == the().calls.end() ? 0 : found->second;
}

void fail_call(std::string const& function, int nth, int code) {
  the().planted_failures.emplace(function, planted{nth - 1, code});
}

void drop_waits(int count) {
  the().waits_to_drop = count;
}
void drop_records(int count) {
  the().records_to_drop = count;
}
void corrupt_messages(int count) {
  the().messages_to_corrupt = count;
}
void set_patience(double seconds) {
  the_settings().patience = seconds;
}

}  // namespace stand_in

extern "C" {

cudaError_t cudaGetLastError() {
  stand_in::entered(__func__);
  auto const last = std::exchange(stand_in::the().last, cudaSuccess);
  return stand_in::the().broken != cudaSuccess ? stand_in::the().broken : last;
}

cudaError_t cudaPeekAtLastError() {
  stand_in::entered(__func__);
  return stand_in::the().broken != cudaSuccess ? stand_in::the().broken : stand_in::the().last;
}

}  // extern "C"
