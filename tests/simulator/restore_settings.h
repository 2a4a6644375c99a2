// Puts the simulator's settings back at the end of a scope.
#pragma once

#include "tandem/simulator/settings.h"

namespace tandem::test {

struct RestoreSettings {
  simulator::Settings saved = simulator::settings();
  ~RestoreSettings() { simulator::settings() = saved; }
};

}  // namespace tandem::test
