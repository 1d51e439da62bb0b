#pragma once
// What a run leaves behind: loss.csv and report.txt. For rank 0.

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <dtm/core/errors.hpp>

namespace example {

struct step_record {
  int step = 0;
  double loss = 0;
  double seconds = 0;  // of this step
};

struct rank_usage {
  int rank = 0;
  std::int64_t kept_bytes = 0;           // measured: what forward leaves for backward
  std::int64_t kept_bytes_expected = 0;  // the contracts' formula
  std::int64_t sent_bytes = 0;           // measured, one step
  std::int64_t sent_bytes_expected = 0;  // formula, mean over ranks
  std::int64_t peak_bytes = 0;           // of tensors and buffers, measured in one step
  std::int64_t resident_bytes = 0;       // of the process, at its peak
};

/// What one kind of module costs rank 0, forward and backward, measured once by itself.
struct module_share {
  std::string module;
  std::int64_t times = 0;  // a step
  double seconds = 0;      // of one
  std::int64_t sent_bytes = 0, kept_bytes = 0, peak_bytes = 0;
};

struct run_report {
  std::string structure;  // name and chains
  std::int64_t tokens = 0, padded = 0, resolved = 0;
  std::string settings;   // one line
  std::string mesh;       // "dp 1 x cp0 2 x cp1 2"
  std::string contracts;  // table of the modules
  std::vector<step_record> steps;
  double final_loss = 0;  // after the last step
  double best_constant = 0;
  double contact_precision = -1;
  std::vector<rank_usage> ranks;
  std::vector<module_share> shares;
};

namespace detail {

inline void write_text(std::string const& path, std::string const& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw dtm::file_error(path + ": cannot be written: " + std::strerror(errno));
}

template <class... Values>
std::string format(char const* pattern, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace detail

/// Time, bytes sent and bytes kept are shares of a step's sum over modules; the peak is that of one
/// module, in MB.
inline std::string share_table(std::vector<module_share> const& shares) {
  using detail::format;
  double seconds = 0, sent = 0, kept = 0;
  for (auto const& each : shares) {
    seconds += double(each.times) * each.seconds;
    sent += double(each.times) * double(each.sent_bytes);
    kept += double(each.times) * double(each.kept_bytes);
  }
  auto const percent = [](double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0.;
  };
  std::string text =
      "\nmodules, forward and backward on rank 0: shares of a step\n"
      "module                           times   time %   sent %   kept %   peak MB\n";
  for (auto const& each : shares) {
    double const times = double(each.times);
    text += format("%-32s %5lld %8.1f %8.1f %8.1f %9.3f\n", each.module.c_str(),
                   (long long)each.times, percent(times * each.seconds, seconds),
                   percent(times * double(each.sent_bytes), sent),
                   percent(times * double(each.kept_bytes), kept), double(each.peak_bytes) / 1e6);
  }
  return text;
}

/// Makes the folder; refuses early, before any training.
inline void make_folder(std::string const& folder) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  if (fault || !std::filesystem::is_directory(folder)) {
    throw dtm::file_error(
        folder + ": this folder cannot be made: " + (fault ? fault.message() : "it is a file"));
  }
}

inline void write_losses(std::string const& path, std::vector<step_record> const& steps) {
  std::string text = "step,loss,seconds\n";
  for (auto const& each : steps)
    text += detail::format("%d,%.9g,%.4f\n", each.step, each.loss, each.seconds);
  detail::write_text(path, text);
}

inline std::string to_text(run_report const& report) {
  using detail::format;
  double total = 0;
  for (auto const& each : report.steps) total += each.seconds;
  double const start = report.steps.empty() ? 0 : report.steps.front().loss;
  std::string text = "structure   " + report.structure + "\n";
  text += format("tokens      %lld, %lld with padding, %lld resolved\n", (long long)report.tokens,
                 (long long)report.padded, (long long)report.resolved);
  text += "settings    " + report.settings + "\nmesh        " + report.mesh + "\n\n";
  text += format("loss        %.4f at the start, %.4f after the last step, %.2g of the start\n",
                 start, report.final_loss, start > 0 ? report.final_loss / start : 0.);
  text += format("            %.4f by the best constant prediction\n", report.best_constant);
  if (report.contact_precision >= 0) {
    text += format(
        "contacts    %.0f %% of the most probable pairs 6 or more residues apart, as many as there "
        "are contacts,\n"
        "            are contacts (in the protein it was trained on)\n",
        100 * report.contact_precision);
  }
  if (!report.steps.empty()) {
    text += format("time        %.1f s for %zu steps, %.3f s a step\n", total, report.steps.size(),
                   total / double(report.steps.size()));
  }
  text +=
      "\nMB a rank, one step (the formula of what is sent is the mean over ranks)\n"
      "rank  kept for backward    formula       sent    formula  peak of tensors  peak of "
      "process\n";
  for (auto const& each : report.ranks) {
    text += format("%4d %18.3f %10.3f %10.3f %10.3f %16.3f %16.1f\n", each.rank,
                   double(each.kept_bytes) / 1e6, double(each.kept_bytes_expected) / 1e6,
                   double(each.sent_bytes) / 1e6, double(each.sent_bytes_expected) / 1e6,
                   double(each.peak_bytes) / 1e6, double(each.resident_bytes) / 1e6);
  }
  if (!report.shares.empty()) text += share_table(report.shares);
  if (!report.contracts.empty()) text += "\ncontracts of the modules\n\n" + report.contracts + "\n";
  return text;
}

inline void write_report(std::string const& path, run_report const& report) {
  detail::write_text(path, to_text(report));
}

/// Peak resident memory of this process, in bytes; 0 where the system does not tell.
inline std::int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace example
