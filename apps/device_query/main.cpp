// device_query: lists what this build can compute on, and what --device auto takes of it.
#include "apps/arguments/arguments.h"
#include "apps/arguments/program.h"
#include "tandem/core/device_query.h"
#include "tandem/core/parse_device.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

namespace {

void print_devices() {
  using namespace tandem;
  for (const DeviceDescription& device : list_devices()) {
    fmt::print("{:<8} {:<44} {:>4} {:<5} {:>7.1f} GiB  {}\n", name_of(device.device), device.name, device.units,
               device.device.type == DeviceType::cpu ? "cores" : "SMs",
               static_cast<double>(device.memory_bytes) / (1 << 30), device.capability);
  }
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) fmt::print("no CUDA device: {}\n", reason);
  fmt::print("--device auto: {}\n", name_of(parse_device("auto")));
}

}  // namespace

int main(int argc, char** argv) {
  return tandem::apps::run_program([&] {
    CLI::App app("Lists the devices that this build can compute on, and which one --device auto takes");
    if (tandem::apps::parse_arguments(app, argc, argv)) print_devices();
    return 0;
  });
}
