// Loading shared libraries.
#include "tandem/core/library_file.h"

#include "tandem/core/error.h"

#include <dlfcn.h>

#include <algorithm>

namespace tandem {

LibraryVersion version_of(int number) {
  const int major_unit = number < 10000 ? 1000 : 10000;
  return {number / major_unit, number % major_unit / 100, number % 100};
}

std::string version_text(const LibraryVersion& version) {
  return fmt::format("{}.{}.{}", version[0], version[1], version[2]);
}

std::vector<std::string> library_files(const LibraryRequest& request, const EnvironmentLookup& lookup) {
  const char* const named = lookup(request.variable.c_str());
  if (named != nullptr && *named != '\0') return {named};
  std::vector<std::string> files{request.file};
  if (!request.built_with.empty()) files.push_back(request.built_with);
  return files;
}

LibraryFile::LibraryFile(const LibraryRequest& request, const std::vector<std::string>& files)
    : name_(request.name),
      advice_(fmt::format("install {}, or let {} name its {}", request.name, request.variable, request.file)) {
  std::string reasons;
  for (const std::string& file : files) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    path_ = file;
    if (handle_ != nullptr) break;
    const char* const reason = dlerror();  // names the file
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason != nullptr ? reason : file.c_str());
  }
  const std::string least = fmt::format("{}.{}", request.least[0], request.least[1]);
  require(handle_ != nullptr, "{} {} or newer was not found ({}): {}", name_, least, reasons, advice_);
  version_ = request.read_version(*this);
  require(version_ != LibraryVersion{}, "{} does not report its version: {}", path_, advice_);
  require(version_ >= request.least, "{} is {} {}, but {} is the least: {}", path_, name_, version_text(version_),
          least, advice_);
  const int last = std::max(request.last_major, request.least[0]);
  const std::string known =
      last == request.least[0] ? fmt::format("{}", last) : fmt::format("{} to {}", request.least[0], last);
  require(version_[0] <= last, "{} is {} {}, but this program knows {} {} only: {}", path_, name_,
          version_text(version_), name_, known, advice_);
}

void* LibraryFile::function(const char* name) const {
  void* const address = dlsym(handle_, name);
  require(address != nullptr, "{} is not the {} that is needed, it has no {}: {}", path_, name_, name, advice_);
  return address;
}

}  // namespace tandem
