// What modules and a model would need on a mesh of any size: memory and messages of a rank, planned by
// one process in seconds.
//
//   planner --tokens 30000 --mesh 8x8 --dtype bf16

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <dtm/core/device.hpp>
#include <dtm/core/element.hpp>

#include "plan.hpp"

namespace example {
namespace {

template <class Device>
plan plan_on(options const& chosen) {
  switch (chosen.dtype) {
    case element::fp32:
      return plan_all<Device, float>(chosen);
    case element::fp64:
      return plan_all<Device, double>(chosen);
    case element::bf16:
      break;
  }
  return plan_all<Device, dtm::bf16>(chosen);
}

void run(std::vector<std::string> const& arguments) {
  auto const [chosen, help] = parse_command_line(arguments);
  if (!help.empty()) {
    std::fputs(help.c_str(), stdout);
    return;
  }
  print(chosen,
        chosen.device == device::host ? plan_on<dtm::host>(chosen) : plan_on<dtm::cuda>(chosen));
}

}  // namespace
}  // namespace example

int main(int count, char** values) {
  try {
    example::run({values + 1, values + count});
    return 0;
  } catch (std::exception const& fault) {
    std::fprintf(stderr, "planner: %s\n", fault.what());
    return 1;
  }
}
