// Every planted fault is found, named rightly and placed at its line, in every order of threads.
#include "tandem/simulator/fault.h"
#include "tandem/simulator/settings.h"
#include "tests/simulator/planted_fault.h"
#include "tests/simulator/restore_settings.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace tandem::test {

namespace {

using simulator::Fault;
using simulator::FaultKind;
using simulator::Order;

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The line that ends with the comment "// fault: NAME", or the next one where the comment has a line of its own.
unsigned marked_line(const PlantedFault& planted) {
  const std::filesystem::path path = std::filesystem::path(TANDEM_FAULTS_DIR) / base_name(planted.file);
  std::ifstream source(path);
  const std::string mark = "// fault: " + planted.name;
  unsigned line = 0;
  for (std::string text; std::getline(source, text);) {
    ++line;
    if (text.ends_with(mark)) return text.find_first_not_of(' ') + mark.size() == text.size() ? line + 1 : line;
  }
  FAIL("no line of " << path.string() << " ends with '" << mark << "'");
  return 0;
}

/// Those in which tandem_simulated_test() runs a program.
constexpr std::pair<Order, std::uint64_t> kStandardOrders[] = {
    {Order::forward, 1}, {Order::reverse, 1}, {Order::random, 1}, {Order::random, 2}, {Order::random, 3}};

bool is_at(const simulator::Site& site, const PlantedFault& planted) {
  return base_name(site.file) == base_name(planted.file) && site.line == marked_line(planted);
}

TEST_CASE("every planted fault is found and placed, in every order") {
#ifdef TANDEM_SIMULATOR_RACE
  constexpr bool kChecked = true;
#else
  constexpr bool kChecked = false;
#endif
  const RestoreSettings restore;
#ifdef __SANITIZE_ADDRESS__
  CHECK(planted_faults().size() >= 94);  // one is left to UndefinedBehaviorSanitizer
#else
  CHECK(planted_faults().size() >= 95);
#endif
  int runs = 0, placed = 0;
  for (const PlantedFault& planted : planted_faults()) {
    if (planted.needs_checked_accesses && !kChecked) continue;
    for (const auto& [order, seed] : kStandardOrders) {
      INFO(planted.name << ", order " << static_cast<int>(order) << ", seed " << seed);
      simulator::settings().order = order;
      simulator::settings().seed = seed;
      bool found = false;
      try {
        planted.run();
        cudaDeviceSynchronize();
      } catch (const Fault& fault) {
        found = true;
        INFO(fault.what());
        const bool too_early = planted.may_read_too_early && fault.kind() == FaultKind::uninitialised;
        if (!too_early) CHECK(simulator::name_of(fault.kind()) == std::string(simulator::name_of(planted.kind)));
        // Which of the two accesses of a race comes second depends on the order.
        const bool right = is_at(fault.site(), planted) || is_at(fault.other_site(), planted);
        if (!right) WARN(planted.name << ": expected line " << marked_line(planted) << ", got\n" << fault.what());
        placed += right ? 1 : 0;
        ++runs;
      }
      CHECK(found);
    }
  }
  INFO(placed << " of " << runs << " were placed at their line");
  CHECK(placed == runs);
}

TEST_CASE("a wait without end names kernel, block and who waits where") {
  const auto& faults = planted_faults();
  const auto planted = std::find_if(faults.begin(), faults.end(),
                                    [](const PlantedFault& fault) { return fault.name == "flag that nobody sets"; });
  REQUIRE(planted != faults.end());
  std::string text;
  try {
    planted->run();
  } catch (const Fault& fault) {
    text = fault.what();
  }
  INFO(text);
  const std::string flag_line = fmt::format("barrier_faults.cu:{}", marked_line(*planted));
  CHECK(text.find("deadlock in tandem::test::flag_nobody_sets") != std::string::npos);
  CHECK(text.find("thread (0,0,0) reads the same again and again at ") != std::string::npos);
  CHECK(text.find(flag_line) != std::string::npos);
  CHECK(text.find("thread (32,0,0) waits in __syncthreads() at ") != std::string::npos);
  CHECK(text.find(", block (0,0,0), thread (") != std::string::npos);
}

}  // namespace
}  // namespace tandem::test
