// Looking for CUPTI.
#include "tandem/core/cupti/library.h"

#include "tandem/core/error.h"

#include <array>

namespace tandem::cupti {

namespace {

constexpr const char* kVariable = "TANDEM_CUPTI_LIBRARY";

/// Until CUDA 12.9 CUPTI counted its interfaces: 19 is that of CUDA 12.0. From CUDA 13 on 130001 is 13.0.1.
LibraryVersion read_version(const LibraryFile& library) {
  Result (*get_version)(std::uint32_t*) = nullptr;
  library.find("cuptiGetVersion", get_version);
  std::uint32_t number = 0;
  if (get_version(&number) != kSuccess) return {};
  const auto interface = static_cast<int>(number);
  if (interface >= 10000) return {interface / 10000, interface / 100 % 100, interface % 100};
  constexpr int kFirst = 19;
  constexpr std::array kMinor{0, 2, 3, 4, 5, 6, 6, 8, 9, 9};
  if (interface < kFirst) return {interface == 0 ? 0 : 11, 0, 0};
  const auto index = static_cast<std::size_t>(interface - kFirst);
  return {12, index < kMinor.size() ? kMinor[index] : kMinor.back(), 0};
}

}  // namespace

LibraryRequest cupti_library() {
#ifdef TANDEM_CUPTI_FILE
  constexpr const char* kBuiltWith = TANDEM_CUPTI_FILE;
#else
  constexpr const char* kBuiltWith = "";
#endif
  return {.name = "CUPTI",
          .file = "libcupti.so.13",
          .variable = kVariable,
          .built_with = kBuiltWith,
          .least = {12, 0, 0},
          .read_version = read_version,
          .last_major = 13};
}

std::vector<std::string> cupti_files(const EnvironmentLookup& lookup, bool is_simulated) {
  std::vector<std::string> files = library_files(cupti_library(), lookup);
  const char* const named = lookup(kVariable);
  if (named != nullptr && *named != '\0') return files;
  require(!is_simulated, "CUPTI does not see simulated GPUs");
  files.insert(files.begin() + 1, "libcupti.so.12");
  return files;
}

Library::Library(const std::vector<std::string>& files) : file(cupti_library(), files) {
  file.find("cuptiGetResultString", result_string);
  file.find("cuptiGetTimestamp", timestamp);
  file.find("cuptiActivityRegisterCallbacks", register_callbacks);
  file.find("cuptiActivityEnable", enable);
  file.find("cuptiActivityDisable", disable);
  file.find("cuptiActivityFlushAll", flush);
  file.find("cuptiActivityGetNextRecord", next_record);
  file.find("cuptiActivityGetNumDroppedRecords", dropped_records);
  file.find("cuptiActivityPushExternalCorrelationId", push_number);
  file.find("cuptiActivityPopExternalCorrelationId", pop_number);
}

void Library::check(Result result, const char* name) const {
  if (result == kSuccess) return;
  const char* text = nullptr;
  const bool has_text = result_string(result, &text) == kSuccess && text != nullptr;
  fail("{}: {} ({})", name, has_text ? text : "unknown error", result);
}

}  // namespace tandem::cupti
