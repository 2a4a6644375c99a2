// What tests of graphs share: how many numbers they compute with, and in which modes.
#pragma once

#include "tandem/simulator/fault.h"
#include "tandem/simulator/settings.h"
#include "tests/simulator/restore_settings.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem::test {

inline constexpr int kCount = 64;
inline constexpr std::size_t kBytes = kCount * sizeof(int);

inline std::vector<int> all(int value) { return std::vector<int>(kCount, value); }

template <typename Check>
void in_both_modes(Check&& check) {
  const RestoreSettings restore;
  for (const auto mode : {simulator::Streams::eager, simulator::Streams::deferred}) {
    simulator::settings().streams = mode;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      simulator::settings().seed = seed;
      check();
    }
  }
}

/// The words of the fault in `work`, "" if there is none.
inline std::string fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const simulator::Fault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace tandem::test
