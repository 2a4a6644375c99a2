// NCCL's library, looked for when it is needed: programs start on machines that do not have it.
#pragma once

#include "comm/launch.h"

#include <string>
#include <vector>

namespace tandem::comm {

/// The first NCCL whose calls return at once, so that a start that hangs can be given up.
inline constexpr int kLeastNcclVersion = 21400;

/// Where to look: the file that TANDEM_NCCL_LIBRARY names and no other, else libnccl.so.2 by the system's rules and
/// then where the build found it.
std::vector<std::string> nccl_files(const EnvironmentLookup& lookup);

/// The library, checked to be NCCL and new enough. It stays loaded until the process ends, as its threads may be alive.
class NcclFile {
 public:
  /// Loads the first of `files` that is there. Throws Error where there is none, or it is something else or too old.
  explicit NcclFile(const std::vector<std::string>& files);

  const std::string& path() const { return path_; }
  int version() const { return version_; }

  /// The address of a function. Throws Error if the library does not have it.
  void* function(const char* name) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
  int version_ = 0;
};

}  // namespace tandem::comm
