// A shared library that is looked for when it is needed: programs start on machines that do not have it.
#pragma once

#include "tandem/core/environment.h"

#include <array>
#include <string>
#include <vector>

namespace tandem {

class LibraryFile;

/// Major, minor, patch.
using LibraryVersion = std::array<int, 3>;

/// Of one number, as NCCL and cuDNN report it: {2, 28, 9} of 22809, {8, 9, 7} of 8907 (old versions count in
/// thousands).
LibraryVersion version_of(int number);

/// "2.28.9"
std::string version_text(const LibraryVersion& version);

/// What is looked for.
struct LibraryRequest {
  std::string name;        // "NCCL"
  std::string file;        // "libnccl.so.2", found by the system's rules
  std::string variable;    // of the environment: names the file, and no other is tried then
  std::string built_with;  // where the build found it, tried last; may be empty
  LibraryVersion least;    // later versions will do as well, up to the next major number, or to last_major
  LibraryVersion (*read_version)(const LibraryFile& library);  // all 0 where the library does not report one
  int last_major = 0;  // the last major number that is known, where that is not the one of `least`
};

/// The files to try, in order.
std::vector<std::string> library_files(const LibraryRequest& request, const EnvironmentLookup& lookup);

/// A loaded library of a version that will do. It stays loaded until the process ends, as its threads may be alive.
class LibraryFile {
 public:
  /// Loads the first of `files` that is there. Throws Error where there is none, or it is something else, too old or
  /// too new; the text says what was tried and what to do.
  LibraryFile(const LibraryRequest& request, const std::vector<std::string>& files);

  const std::string& path() const { return path_; }
  const LibraryVersion& version() const { return version_; }

  /// The address of a function. Throws Error if the library does not have it.
  void* function(const char* name) const;

  /// The same, as a pointer of its type.
  template <typename Function>
  void find(const char* name, Function*& function_pointer) const {
    function_pointer = reinterpret_cast<Function*>(function(name));
  }

 private:
  std::string name_, advice_, path_;
  void* handle_ = nullptr;
  LibraryVersion version_{};
};

}  // namespace tandem
