// What CUPTI's records tell of the GPU's work.
#pragma once

#include "tandem/core/cupti/clocks.h"
#include "tandem/core/cupti/library.h"
#include "tandem/core/timeline.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tandem::cupti {

/// An activity before it is known which range and which row it belongs to.
struct Activity {
  DeviceActivity what;  // `op` and `stream` are not set
  std::uint32_t device = 0, context = 0, stream = 0;
  std::uint64_t range = 0;  // the number that its thread had pushed as it was enqueued; 0: none
};

/// Reads buffers of records, which may come in any order.
class RecordReader {
 public:
  explicit RecordReader(const Library& library) : library_(library) {}

  void read(std::uint8_t* buffer, std::size_t valid_bytes);

  /// The activities that began at `first` or later, by their beginning, in the host's time. To be called once.
  std::vector<Activity> activities(const ClockReading& first, const ClockReading& last);

  /// Activities without times, which CUPTI could not tell.
  std::int64_t without_times() const { return without_times_; }
  /// Buffers with something that is no record; what lies behind it is lost.
  std::int64_t broken_buffers() const { return broken_buffers_; }

 private:
  struct Timed {
    Activity activity;
    std::uint64_t start, end;
    std::uint32_t correlation;
  };

  void read(const Record* record);
  template <typename T>
  void add(const T& record, DeviceActivity what);

  const Library& library_;
  std::vector<Timed> timed_;
  std::unordered_map<std::uint32_t, std::uint64_t> ranges_;  // by correlation
  std::int64_t without_times_ = 0, broken_buffers_ = 0;
};

}  // namespace tandem::cupti
