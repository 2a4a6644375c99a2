// Reading records by their kind.
#include "tandem/core/cupti/records.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace tandem::cupti {

namespace {

template <typename T>
T record_as(const Record* record) {
  T copy;
  std::memcpy(&copy, record, sizeof(T));
  return copy;
}

/// "void fill<float>(float*, int)" of "_Z4fillIfEvPT_i"; other names, of C for instance, as they are.
std::string demangled(const char* name) {
  if (name == nullptr) return "kernel without a name";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         std::free);
  return status == 0 ? text.get() : name;
}

/// By CUpti_ActivityMemcpyKind.
const char* copy_name(std::uint8_t kind) {
  switch (kind) {
    case 1:
      return "copy host to device";
    case 2:
      return "copy device to host";
    case 8:
      return "copy within the device";
    case 9:
      return "copy host to host";
    case 10:
      return "copy between devices";
    default:
      return "copy";
  }
}

DeviceActivity activity_of(const KernelRecord& record) {
  DeviceActivity what;
  what.name = demangled(record.name);
  std::ranges::copy(record.grid, what.grid.begin());
  std::ranges::copy(record.block, what.block.begin());
  what.registers = record.registers_per_thread;
  what.static_shared_bytes = record.static_shared_memory;
  what.dynamic_shared_bytes = record.dynamic_shared_memory;
  return what;
}

DeviceActivity activity_of(ActivityKind kind, const char* name, std::uint64_t bytes) {
  DeviceActivity what;
  what.kind = kind;
  what.name = name;
  what.bytes = static_cast<std::int64_t>(bytes);
  return what;
}

}  // namespace

template <typename T>
void RecordReader::add(const T& record, DeviceActivity what) {
  if (record.start == 0 || record.end < record.start) {
    ++without_times_;
    return;
  }
  timed_.push_back(
      {{std::move(what), record.device, record.context, record.stream}, record.start, record.end, record.correlation});
}

void RecordReader::read(const Record* record) {
  switch (record->kind) {
    case RecordKind::kernel: {
      const auto kernel = record_as<KernelRecord>(record);
      return add(kernel, activity_of(kernel));
    }
    case RecordKind::copy: {
      const auto copy = record_as<CopyRecord>(record);
      return add(copy, activity_of(ActivityKind::copy, copy_name(copy.copy_kind), copy.bytes));
    }
    case RecordKind::copy_between_devices: {
      const auto copy = record_as<DeviceCopyRecord>(record);
      return add(copy, activity_of(ActivityKind::copy, copy_name(copy.copy_kind), copy.bytes));
    }
    case RecordKind::fill: {
      const auto fill = record_as<FillRecord>(record);
      return add(fill, activity_of(ActivityKind::fill, "fill", fill.bytes));
    }
    case RecordKind::external_correlation: {
      const auto correlation = record_as<CorrelationRecord>(record);
      if (correlation.external_kind == kOwnRanges) ranges_[correlation.correlation] = correlation.number;
      return;
    }
    default:
      return;  // calls, which are there for the sake of their correlation
  }
}

void RecordReader::read(std::uint8_t* buffer, std::size_t valid_bytes) {
  Record* record = nullptr;
  Result result = kSuccess;
  while ((result = library_.next_record(buffer, valid_bytes, &record)) == kSuccess) read(record);
  if (result != kNoMoreRecords) ++broken_buffers_;
}

std::vector<Activity> RecordReader::activities(const ClockReading& first, const ClockReading& last) {
  std::ranges::stable_sort(timed_, {}, &Timed::start);
  std::vector<Activity> all;
  for (Timed& timed : timed_) {
    if (static_cast<std::int64_t>(timed.start) < first.cupti_ns) continue;
    const auto range = ranges_.find(timed.correlation);
    if (range != ranges_.end()) timed.activity.range = range->second;
    DeviceActivity& what = timed.activity.what;
    what.begin_ns = host_time(timed.start, first, last);
    what.duration_ns = static_cast<std::int64_t>(timed.end - timed.start);
    all.push_back(std::move(timed.activity));
  }
  return all;
}

}  // namespace tandem::cupti
