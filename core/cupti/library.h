// CUPTI's library: where it is looked for, and its functions.
#pragma once

#include "tandem/core/cupti/abi.h"
#include "tandem/core/environment.h"
#include "tandem/core/library_file.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::cupti {

/// CUPTI of CUDA 12 or 13.
LibraryRequest cupti_library();

/// The files to try, in order: the one that TANDEM_CUPTI_LIBRARY names and no other, or libcupti.so.13, libcupti.so.12
/// and where the build found it. Throws Error where none is to be used: simulated GPUs (`is_simulated`) have no
/// kernels that CUPTI could see, unless the variable names a library.
std::vector<std::string> cupti_files(const EnvironmentLookup& lookup, bool is_simulated);

/// What is used of it.
struct Library {
  /// Throws Error where it is not there or lacks a function.
  explicit Library(const std::vector<std::string>& files);

  /// Throws Error with CUPTI's own words unless `result`, of the function `name`, is kSuccess.
  void check(Result result, const char* name) const;

  LibraryFile file;
  Result (*result_string)(Result, const char**) = nullptr;
  Result (*timestamp)(std::uint64_t*) = nullptr;
  Result (*register_callbacks)(RequestBuffer, CompleteBuffer) = nullptr;
  Result (*enable)(RecordKind) = nullptr;
  Result (*disable)(RecordKind) = nullptr;
  Result (*flush)(std::uint32_t flag) = nullptr;
  Result (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes, Record** record) = nullptr;
  Result (*dropped_records)(void* context, std::uint32_t stream, std::size_t*) = nullptr;
  Result (*push_number)(std::uint32_t kind, std::uint64_t number) = nullptr;
  Result (*pop_number)(std::uint32_t kind, std::uint64_t* last) = nullptr;
};

}  // namespace tandem::cupti
