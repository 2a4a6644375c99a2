// The library that pretends to be CUPTI, as a test sees it.
#pragma once

#include "tandem/core/cupti/abi.h"
#include "tandem/core/cupti/library.h"
#include "tests/core/fake_cupti/state.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace tandem::test {

/// Puts it into its first state.
class StandIn {
 public:
  explicit StandIn(const std::string& path = FAKE_CUPTI) : library_({path}) {
    FakeCuptiState* (*find_state)() = nullptr;
    library_.file.find("fake_cupti_state", find_state);
    library_.file.find("fake_cupti_call", call_);
    state_ = find_state();
    *state_ = {};
  }

  FakeCuptiState* operator->() const { return state_; }
  const cupti::Library& library() const { return library_; }

  /// By its clock, in nanoseconds.
  std::uint64_t now() const {
    std::uint64_t time = 0;
    library_.timestamp(&time);
    return time;
  }

  /// A kernel, copy or fill that this thread enqueues now, and which runs from `begin_us` to `end_us` after `time`.
  template <typename T>
  void enqueue(T record, double begin_us, double end_us, std::uint64_t time) const {
    record.correlation = call_();
    record.start = time + static_cast<std::uint64_t>(1e3 * begin_us);
    record.end = time + static_cast<std::uint64_t>(1e3 * end_us);
    add(record);
  }
  template <typename T>
  void enqueue(const T& record, double begin_us, double end_us) const {
    enqueue(record, begin_us, end_us, now());
  }

  template <typename T>
  void add(const T& record) const {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&record);
    state_->records.emplace_back(bytes, bytes + sizeof(T));
    state_->records.back().resize(sizeof(T) + 64);  // those of later versions are longer
  }

 private:
  cupti::Library library_;
  FakeCuptiState* state_ = nullptr;
  std::uint32_t (*call_)() = nullptr;
};

inline cupti::KernelRecord kernel_record(const char* name, std::uint32_t stream = 7) {
  cupti::KernelRecord record{};
  record.kind = cupti::RecordKind::kernel;
  record.name = name;
  record.stream = stream;
  return record;
}

/// Of CUpti_ActivityMemcpyKind `copy_kind`.
inline cupti::CopyRecord copy_record(std::uint8_t copy_kind, std::uint64_t bytes, std::uint32_t stream = 7) {
  cupti::CopyRecord record{};
  record.kind = cupti::RecordKind::copy;
  record.copy_kind = copy_kind;
  record.bytes = bytes;
  record.stream = stream;
  return record;
}

/// Names the library that timelines use, while it lives.
class CuptiScope {
 public:
  explicit CuptiScope(const char* path) { setenv("TANDEM_CUPTI_LIBRARY", path, 1); }
  ~CuptiScope() { unsetenv("TANDEM_CUPTI_LIBRARY"); }
  CuptiScope(const CuptiScope&) = delete;
  CuptiScope& operator=(const CuptiScope&) = delete;
};

inline std::int64_t steady_now_ns() {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace tandem::test
