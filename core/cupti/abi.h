// The part of NVIDIA's CUPTI that is used here, declared anew: its headers need not be there, and the library that is
// found may be of another version than they are. Records only grow at their ends: what is declared lies where it does
// in CUPTI 12 and 13, which tests/core/cupti/layout.cpp compares with the headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem::cupti {

/// A CUptiResult.
using Result = int;
constexpr Result kSuccess = 0, kNoMoreRecords = 12;

/// CUpti_ActivityKind: what is asked for.
enum class RecordKind : std::uint32_t {
  copy = 1,
  fill = 2,
  driver_call = 4,
  runtime_call = 5,
  kernel = 10,
  copy_between_devices = 22,
  external_correlation = 39
};

/// CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
constexpr std::uint32_t kFlushAll = 1;
/// CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
constexpr std::uint32_t kOwnRanges = 3;

/// What all records begin with.
struct Record {
  RecordKind kind;
};

/// CUpti_ActivityKernel4 to 10. Times of all records are nanoseconds of CUPTI's clock, 0 where they are not known.
struct KernelRecord {
  RecordKind kind;
  std::uint8_t cache_configuration, shared_memory_configuration;
  std::uint16_t registers_per_thread;
  std::int32_t partitioned_cache_requested, partitioned_cache_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3];
  std::int32_t static_shared_memory, dynamic_shared_memory;
  std::uint32_t local_memory_per_thread, local_memory;
  std::uint32_t correlation;
  std::int64_t grid_number;
  const char* name;  // mangled; lives as long as the kernel's module
};

/// CUpti_ActivityMemcpy to 6, and CUpti_ActivityMemcpyPtoP to 4 as far as `stream`.
struct CopyRecord {
  RecordKind kind;
  std::uint8_t copy_kind, from_kind, to_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream;
  std::uint32_t correlation;
};

/// CUpti_ActivityMemcpyPtoP to 4.
struct DeviceCopyRecord {
  RecordKind kind;
  std::uint8_t copy_kind, from_kind, to_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream;
  std::uint32_t from_device, from_context, to_device, to_context;
  std::uint32_t correlation;
};

/// CUpti_ActivityMemset to 4.
struct FillRecord {
  RecordKind kind;
  std::uint32_t value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream;
  std::uint32_t correlation;
};

/// CUpti_ActivityExternalCorrelation: the innermost number that a thread had pushed as it made a call of CUDA's.
struct CorrelationRecord {
  RecordKind kind;
  std::uint32_t external_kind;
  std::uint64_t number;
  std::uint32_t correlation;
};

/// CUpti_BuffersCallbackRequestFunc and CUpti_BuffersCallbackCompleteFunc. `context` is a CUcontext.
using RequestBuffer = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most_records);
using CompleteBuffer = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                std::size_t valid_bytes);

}  // namespace tandem::cupti
