// The table itself.
#include "tests/simulator/planted_fault.h"

namespace tandem::test {

std::vector<PlantedFault>& planted_faults() {
  static std::vector<PlantedFault> faults;
  return faults;
}

}  // namespace tandem::test
