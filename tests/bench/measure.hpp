#pragma once
// What the programs of the bench have in common: how a time is taken, and the lines they write.
//
// A program is started for one case. It writes one JSON object a line: what it is about to measure
// and the numbers to check it by, then a time for every line that it reads, until its input ends.
// So tests/bench/bench.py lets several programs take turns; whoever is not measured waits in a read.

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace dtm::bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Of all threads of this process: what a shared machine disturbs less than the clock on the wall.
inline double cpu_now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// One JSON object on one line.
class line {
 public:
  line& number(char const* key, double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return add(key, text);
  }
  line& text(char const* key, std::string const& value) { return add(key, '"' + value + '"'); }
  line& numbers(char const* key, std::vector<double> const& values) {
    std::string list;
    for (double const value : values) {
      char text[32];
      std::snprintf(text, sizeof text, "%s%.17g", list.empty() ? "" : ", ", value);
      list += text;
    }
    return add(key, '[' + list + ']');
  }
  void print() const {
    std::printf("{%s}\n", fields_.c_str());
    std::fflush(stdout);
  }

 private:
  line& add(char const* key, std::string const& value) {
    fields_ += (fields_.empty() ? "\"" : ", \"") + std::string(key) + "\": " + value;
    return *this;
  }
  std::string fields_;
};

/// The largest resident size since forget_peak(), or since the start where the kernel does not let
/// it be forgotten.
inline double peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string text; std::getline(status, text);)
    if (text.starts_with("VmHWM:")) return 1024 * std::strtod(text.c_str() + 6, nullptr);
  return 0;
}
inline void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << 5;
}

inline double page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_minflt);
}

/// How many runs of something that takes `seconds` fill `least`.
inline int runs_to_fill(double least, double seconds) {
  return seconds >= least ? 1 : int(std::ceil(least / std::max(seconds, 1e-9)));
}

}  // namespace dtm::bench
