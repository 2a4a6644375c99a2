// Loading NCCL's library.
#include "comm/nccl_file.h"

#include "comm/nccl_choice.h"
#include "core/error.h"

#include <dlfcn.h>

namespace tandem::comm {

namespace {

constexpr const char* kAdvice = "install NCCL, or let TANDEM_NCCL_LIBRARY name its libnccl.so.2";

}  // namespace

std::vector<std::string> nccl_files(const EnvironmentLookup& lookup) {
  const char* const named = lookup("TANDEM_NCCL_LIBRARY");
  if (named != nullptr && *named != '\0') return {named};
  std::vector<std::string> files{"libnccl.so.2"};
#ifdef TANDEM_NCCL_FILE
  files.emplace_back(TANDEM_NCCL_FILE);
#endif
  return files;
}

NcclFile::NcclFile(const std::vector<std::string>& files) {
  std::string reasons;
  for (const std::string& file : files) {
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    path_ = file;
    if (handle_ != nullptr) break;
    const char* const reason = dlerror();  // names the file
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason != nullptr ? reason : file.c_str());
  }
  const std::string least = fmt::format("{}.{}", kLeastNcclVersion / 10000, kLeastNcclVersion % 10000 / 100);
  require(handle_ != nullptr, "NCCL {} or newer was not found ({}): {}", least, reasons, kAdvice);

  using GetVersion = int (*)(int*);  // ncclResult_t, where 0 is success
  const auto get_version = reinterpret_cast<GetVersion>(function("ncclGetVersion"));
  require(get_version(&version_) == 0 && version_ > 0, "{} does not tell its version: {}", path_, kAdvice);
  require(version_ >= kLeastNcclVersion, "{} is NCCL {}, but {} is the least: {}", path_, nccl_version_text(version_),
          least, kAdvice);
  require(version_ / 10000 == 2, "{} is NCCL {}, but this program knows NCCL 2 only: {}", path_,
          nccl_version_text(version_), kAdvice);
}

void* NcclFile::function(const char* name) const {
  void* const address = dlsym(handle_, name);
  require(address != nullptr, "{} is not the NCCL that is needed, it has no {}: {}", path_, name, kAdvice);
  return address;
}

}  // namespace tandem::comm
