// What a kernel did wrong, and how that ends the launch.
#pragma once

#include "tandem/simulator/fault_kind.h"
#include "tandem/simulator/site.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace tandem::simulator {

const char* name_of(FaultKind kind);

/// Thrown out of a launch (or, with deferred streams, out of the call that waits for it). The first line says what
/// happened and in which kernel; the others where: file:line, block and thread.
class Fault : public std::runtime_error {
 public:
  Fault(FaultKind kind, std::string kernel, Site site, Site other_site, const std::string& text)
      : std::runtime_error(text),
        kind_(kind),
        kernel_(std::move(kernel)),
        site_(std::move(site)),
        other_site_(std::move(other_site)) {}

  FaultKind kind() const { return kind_; }
  const std::string& kernel() const { return kernel_; }
  /// Where the access or call that showed the fault stands in the source.
  const Site& site() const { return site_; }
  /// Of a race: where the other access stands. Line 0 otherwise.
  const Site& other_site() const { return other_site_; }

 private:
  FaultKind kind_;
  std::string kernel_;
  Site site_, other_site_;
};

}  // namespace tandem::simulator
