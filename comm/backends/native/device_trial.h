// Whether ranks read in each other's GPU memory what is there, and when it is there: tried before anything relies on
// it.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/transports/cuda_ipc/device_window.h"
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tandem::comm {

/// In each round all ranks write numbers at both ends of their slots, some of them late, and record a mark; the others
/// wait for it, read them by copies and by a kernel, and compare. A few dozen milliseconds where all is well.
class DeviceTrial {
 public:
  /// `window` is open, has slots of `segment_bytes`, and outlives this.
  DeviceTrial(DeviceWindow& window, const Place& place, std::int64_t segment_bytes);

  /// Why the ranks cannot use each other's memory, the same on all; "": they can. A rank waits for its GPU no longer
  /// than `limit` in a round. Collective.
  std::string run(Backend& backend, std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// Whether the streams of all ranks have done everything: else nothing that they may yet touch can go. Collective.
  bool is_idle_on_all(Backend& backend) const;
  /// The memory that this rank's stream may yet write to.
  void keep_for_ever();

 private:
  /// Where numbers are: both ends of an input slot, and the beginning of a result slot.
  static constexpr int kPlaces = 3;
  static constexpr std::int64_t kNumbers = 32;  // of i64, as many bytes as the smallest slot has
  static constexpr std::int64_t kBytes = kNumbers * 8;

  std::byte* place_of(int rank, std::uint64_t slot, int place) const;
  static std::int64_t* row(const Tensor& tensor, int rank, std::uint64_t slot, int place);
  void write(int round);
  void read(int round, std::chrono::milliseconds limit);
  void compare(int round) const;

  DeviceWindow& window_;
  Place own_;
  std::int64_t segment_bytes_;
  Tensor written_, read_, sums_;  // by rank, slot and place, as far as they have those
  std::vector<Event> ends_;       // of what is read of each rank, and of the kernels
};

}  // namespace tandem::comm
