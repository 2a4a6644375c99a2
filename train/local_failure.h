// What goes wrong on one rank while the others go on, and wait for it later.
#pragma once

#include "tandem/comm/process_group.h"

#include <exception>
#include <string>
#include <utility>

namespace tandem::train {

/// Keeps what a rank's own work throws until all ranks are told, so that nobody waits for a rank that gave up.
class LocalFailure {
 public:
  /// Calls `body`, and keeps what it throws; does nothing where something was thrown already. `body` must hold no
  /// collective operation.
  template <typename Body>
  void guard(Body&& body) {
    if (failure_) return;
    try {
      std::forward<Body>(body)();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  /// Whether something was thrown.
  bool has_failed() const { return failure_ != nullptr; }
  /// Throws it again, if there is something.
  void throw_own() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Where a rank has failed, throws on each: comm::AgreedError, and there what is no Error as it was. Collective.
  void tell(comm::ProcessGroup& group) const;

 private:
  std::exception_ptr failure_;
};

}  // namespace tandem::train
