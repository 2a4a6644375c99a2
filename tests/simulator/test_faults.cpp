// Every planted fault is found, named rightly and placed at its line, in every order of threads.
#include "simulator/fault.h"
#include "simulator/settings.h"
#include "tests/simulator/planted_fault.h"
#include "tests/simulator/restore_settings.h"

#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>

#include <fstream>

namespace tandem::test {

namespace {

using simulator::Fault;
using simulator::FaultKind;
using simulator::Order;

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The line that carries the comment "// fault: NAME".
unsigned marked_line(const PlantedFault& planted) {
  const std::string path = std::string(TANDEM_FAULTS_DIR) + "/" + base_name(planted.file);
  std::ifstream source(path);
  const std::string mark = "// fault: " + planted.name;
  unsigned line = 0;
  for (std::string text; std::getline(source, text);) {
    ++line;
    if (text.ends_with(mark)) return line;
  }
  FAIL("no line of " << path << " ends with '" << mark << "'");
  return 0;
}

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
  CHECK(planted_faults().size() >= 60);
  int runs = 0, placed = 0;
  for (const PlantedFault& planted : planted_faults()) {
    if (planted.needs_checked_accesses && !kChecked) continue;
    for (const Order order : {Order::forward, Order::reverse, Order::random}) {
      INFO(planted.name << ", order " << static_cast<int>(order));
      simulator::settings().order = order;
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

}  // namespace
}  // namespace tandem::test
