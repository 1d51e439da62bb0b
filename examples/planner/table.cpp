#include <cstdio>
#include <string>

#include "plan.hpp"

namespace example {
namespace {

std::string text_of(std::int64_t bytes) {
  if (bytes == 0) return "0";
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  double value = double(bytes);
  for (; value >= 1000 && unit < 4; ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", value, units[unit]);
  return text;
}

}  // namespace

void print(options const& chosen, plan const& made) {
  std::printf("N = %lld", static_cast<long long>(chosen.tokens));
  if (chosen.padded() != chosen.tokens)
    std::printf(", with padding %lld,", static_cast<long long>(chosen.padded()));
  std::printf(" on %d ranks: dp %d, cp0 %d, cp1 %d; %d channels of %s on %s", chosen.ranks(),
              chosen.dp, chosen.cp0, chosen.cp1, chosen.channels, to_string(chosen.dtype),
              to_string(chosen.device));
  if (chosen.model) std::printf("; %d blocks", chosen.blocks);
  std::printf("\nthe most of any rank; peaks are beside inputs and parameters\n\n");
  std::printf("%-34s %-21s %9s %9s %9s %9s %5s\n", "", "", "peak", "messages", "kept", "sent",
              "calls");
  for (auto const& [subject, work, cost] : made.rows)
    std::printf("%-34s %-21s %9s %9s %9s %9s %5lld\n", subject.c_str(), work.c_str(),
                text_of(cost.peak.peak_bytes).c_str(),
                text_of(cost.peak.communication_bytes).c_str(), text_of(cost.kept_bytes).c_str(),
                text_of(cost.sent_bytes()).c_str(), static_cast<long long>(cost.collectives()));
  std::printf("\nsent by collective\n\n");
  for (auto const& [subject, work, cost] : made.rows)
    for (auto const& v : cost.volumes)
      std::printf("%-34s %-21s %-12s %-12s %9s %5lld\n", subject.c_str(), work.c_str(),
                  v.operation.c_str(), v.axes.c_str(), text_of(v.sent_bytes).c_str(),
                  static_cast<long long>(v.times));
  if (chosen.model)
    std::printf(
        "\na rank that trains the model has %s at most, inputs, parameters, moments and "
        "copies of messages included\n",
        text_of(made.most_bytes).c_str());
  std::printf("\nall %d ranks issue matching sequences of collectives\n", chosen.ranks());
}

}  // namespace example
