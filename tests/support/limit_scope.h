// Limits of the system on this process, for a while.
#pragma once

#ifdef __linux__
#include <sys/resource.h>

#include <cstdint>
#include <fstream>

namespace tandem::test {

/// A limit until the end of the scope.
class LimitScope {
 public:
  LimitScope(__rlimit_resource resource, std::int64_t limit) : resource_(resource) {
    getrlimit(resource, &before_);
    const rlimit now{.rlim_cur = static_cast<rlim_t>(limit), .rlim_max = before_.rlim_max};
    setrlimit(resource, &now);
  }
  ~LimitScope() { setrlimit(resource_, &before_); }
  LimitScope(const LimitScope&) = delete;
  LimitScope& operator=(const LimitScope&) = delete;

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};

/// Bytes of addresses that this process has mapped.
inline std::int64_t mapped_bytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

}  // namespace tandem::test
#endif
