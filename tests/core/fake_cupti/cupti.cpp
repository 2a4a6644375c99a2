// A library that has of CUPTI what a timeline uses. It plays back the records that a test gives it. In a buffer of it
// each record has its size in front, which is no business of those who read it.
#include "tandem/core/cupti/abi.h"
#include "tests/core/fake_cupti/state.h"

#include <chrono>
#include <cstring>
#include <utility>

using namespace tandem::cupti;
using tandem::test::FakeCuptiState;

namespace {

constexpr Result kInvalidKind = 21;

FakeCuptiState state;
RequestBuffer request_buffer = nullptr;
CompleteBuffer complete_buffer = nullptr;
thread_local std::vector<std::uint64_t> numbers;

template <typename T>
void keep(const T& record) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record);
  state.records.emplace_back(bytes, bytes + sizeof(T));
}

/// Puts a record at `place`, and returns the place behind it.
std::uint8_t* put(std::uint8_t* place, const std::vector<std::uint8_t>& record) {
  const std::uint64_t size = (record.size() + 7) / 8 * 8;
  std::memcpy(place, &size, sizeof(size));
  if (!record.empty()) std::memcpy(place + sizeof(size), record.data(), record.size());
  return place + sizeof(size) + size;
}

}  // namespace

extern "C" {

FakeCuptiState* fake_cupti_state() { return &state; }

/// What a call of CUDA's in this thread leaves behind; returns its correlation.
std::uint32_t fake_cupti_call() {
  const std::uint32_t correlation = ++state.correlation;
  if (!numbers.empty() && state.enabled.contains(static_cast<std::uint32_t>(RecordKind::external_correlation)))
    keep(CorrelationRecord{RecordKind::external_correlation, kOwnRanges, numbers.back(), correlation});
  return correlation;
}

Result cuptiGetVersion(std::uint32_t* version) {
  *version = FAKE_CUPTI_VERSION;
  return kSuccess;
}

Result cuptiGetResultString(Result result, const char** text) {
  if (result != 35) return 1;
  *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
  return kSuccess;
}

#if !FAKE_CUPTI_IS_BARE
Result cuptiGetTimestamp(std::uint64_t* time) {
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  const double scaled = static_cast<double>(now.count()) * (state.clock_rate - 1.0);
  *time = static_cast<std::uint64_t>(now.count() + static_cast<std::int64_t>(scaled) + state.clock_shift_ns);
  return state.timestamp_result;
}
#endif

Result cuptiActivityRegisterCallbacks(RequestBuffer request, CompleteBuffer complete) {
  request_buffer = request;
  complete_buffer = state.complete_buffer = complete;
  return kSuccess;
}

Result cuptiActivityEnable(RecordKind kind) {
  const auto number = static_cast<std::uint32_t>(kind);
  if (number == state.refused_kind) return state.enable_result;
  state.enabled.insert(number);
  return kSuccess;
}

Result cuptiActivityDisable(RecordKind kind) {
  state.enabled.erase(static_cast<std::uint32_t>(kind));
  return kSuccess;
}

Result cuptiActivityFlushAll(std::uint32_t flag) {
  if (state.flush_result != kSuccess) return state.flush_result;
  if (flag != kFlushAll) return kSuccess;  // buffers that are not full stay
  const auto records = std::exchange(state.records, {});
  for (std::size_t next = 0; next < records.size();) {
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0, most_records = 0;
    request_buffer(&buffer, &bytes, &most_records);
    if (buffer == nullptr) {
      state.dropped += records.size() - next;
      return kSuccess;
    }
    std::uint8_t* end = buffer;
    for (std::size_t i = 0; i < state.records_of_a_buffer && next < records.size(); ++i)
      end = put(end, records[next++]);
    if (state.breaks_buffers) end = put(end, {});
    complete_buffer(nullptr, 0, buffer, bytes, static_cast<std::size_t>(end - buffer));
  }
  return kSuccess;
}

Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, Record** record) {
  std::uint64_t size = 0;
  auto* place = buffer;
  if (*record != nullptr) {
    place = reinterpret_cast<std::uint8_t*>(*record);
    std::memcpy(&size, place - sizeof(size), sizeof(size));
    place += size;
  }
  if (place >= buffer + valid_bytes) return kNoMoreRecords;
  std::memcpy(&size, place, sizeof(size));
  if (size == 0) return kInvalidKind;
  *record = reinterpret_cast<Record*>(place + sizeof(size));
  return kSuccess;
}

Result cuptiActivityGetNumDroppedRecords(void* /*context*/, std::uint32_t /*stream*/, std::size_t* dropped) {
  if (const auto act = std::exchange(state.as_it_counts, {})) act();
  *dropped = std::exchange(state.dropped, 0);
  return kSuccess;
}

Result cuptiActivityPushExternalCorrelationId(std::uint32_t kind, std::uint64_t number) {
  if (kind != kOwnRanges) return 1;
  ++state.pushed;
  numbers.push_back(number);
  return kSuccess;
}

Result cuptiActivityPopExternalCorrelationId(std::uint32_t kind, std::uint64_t* /*last*/) {
  if (kind != kOwnRanges || numbers.empty()) return 1;
  ++state.popped;
  numbers.pop_back();
  return kSuccess;
}
}
