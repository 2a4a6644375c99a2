// Settings from the environment.
#include "tandem/simulator/settings.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace tandem::simulator {

namespace {

[[noreturn]] void refuse(const char* name, std::string_view value, const char* choices) {
  throw std::runtime_error("simulator: " + std::string(name) + " is '" + std::string(value) + "': choose " + choices);
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

template <typename Number>
Number parse_number(const char* name, std::string_view text, Number low) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low) refuse(name, text, "a whole number");
  return value;
}

Settings from_environment() {
  Settings result;
  constexpr const char* kOrder = "TANDEM_SIMULATOR_ORDER";
  if (std::string_view order = variable(kOrder); !order.empty()) {
    const std::size_t colon = order.find(':');
    if (colon != std::string_view::npos) result.seed = parse_number<std::uint64_t>(kOrder, order.substr(colon + 1), 0);
    order = order.substr(0, colon);
    if (order == "forward")
      result.order = Order::forward;
    else if (order == "reverse")
      result.order = Order::reverse;
    else if (order == "random")
      result.order = Order::random;
    else
      refuse(kOrder, order, "forward, reverse or random[:SEED]");
  }
  constexpr const char* kStreams = "TANDEM_SIMULATOR_STREAMS";
  if (const std::string_view streams = variable(kStreams); !streams.empty()) {
    if (streams == "deferred")
      result.streams = Streams::deferred;
    else if (streams != "eager")
      refuse(kStreams, streams, "eager or deferred");
  }
  constexpr const char* kDevices = "TANDEM_SIMULATOR_DEVICES";
  if (const std::string_view devices = variable(kDevices); !devices.empty())
    result.devices = parse_number<int>(kDevices, devices, 0);
  constexpr const char* kMultiprocessors = "TANDEM_SIMULATOR_MULTIPROCESSORS";
  if (const std::string_view multiprocessors = variable(kMultiprocessors); !multiprocessors.empty())
    result.multiprocessors = parse_number<int>(kMultiprocessors, multiprocessors, 1);
  constexpr const char* kMemory = "TANDEM_SIMULATOR_MEMORY";
  if (const std::string_view memory = variable(kMemory); !memory.empty())
    result.memory_bytes = parse_number<std::size_t>(kMemory, memory, 1);
  constexpr const char* kIpc = "TANDEM_SIMULATOR_IPC";
  if (const std::string_view ipc = variable(kIpc); !ipc.empty()) {
    if (ipc == "on")
      result.ipc = Ipc::on;
    else if (ipc == "off")
      result.ipc = Ipc::off;
    else if (ipc == "foreign")
      result.ipc = Ipc::foreign;
    else if (ipc == "unordered")
      result.ipc = Ipc::unordered;
    else if (ipc == "stuck")
      result.ipc = Ipc::stuck;
    else
      refuse(kIpc, ipc, "on, off, foreign, unordered or stuck");
  }
  result.coverage_file = variable("TANDEM_SIMULATOR_COVERAGE");
  result.lint_file = variable("TANDEM_SIMULATOR_LINT");
  result.lint = !result.lint_file.empty();
  return result;
}

}  // namespace

Settings& settings() {
  static Settings current = from_environment();
  return current;
}

}  // namespace tandem::simulator
