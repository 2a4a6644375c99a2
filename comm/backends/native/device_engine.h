// Collectives through memory that the GPUs of all ranks see: each rank's GPU reads what others' have put there.
#pragma once

#include "tandem/comm/backends/native/collective_agreement.h"
#include "tandem/comm/backends/native/device_segments.h"
#include "tandem/comm/backends/native/parked_windows.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/transports/cuda_ipc/device_window.h"
#include "tandem/comm/transports/shared_memory/ended_peer.h"
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/comm/transports/shared_memory/window.h"
#include "tandem/core/stream.h"

#include <unistd.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::comm {

/// A collective under way.
struct DeviceOperation {
  /// `issued`: the stream has all of it.
  enum class Stage : std::uint8_t { queued, moving, issued, complete };

  Collective collective;
  Event ready = Event();  ///< what the tensors' stream did before
  Event done = Event();   ///< behind the last segment
  Stage stage = Stage::queued;
  std::uint64_t number = 0;          ///< among those of the device window, from 1
  std::uint64_t first = 0, end = 0;  ///< its segments among all that go through the window
  bool by_parts = false;             ///< each rank reduces a part, and others take it
  std::exception_ptr fault = {};     ///< why it failed: it is complete then
  std::optional<StreamAtWork> at_work = {};

  bool is_complete() const { return stage == Stage::complete; }
};

/// What a rank tells the others by host memory.
struct DeviceRankArea {
  AnnouncementArea announcements;
  Counter copied;  ///< segments whose mark DeviceMark::copied is recorded; `reduced` and `taken` alike
  Counter reduced;
  Counter taken;
  Counter done;                         ///< operations that its GPU has done, as far as its host knows
  std::atomic<bool> has_failed{false};  ///< with `failure`
  std::atomic<bool> has_closed{false};  ///< it has given the others' memory back
  char failure[512];                    ///< whose fault it is, and why: "rank 1 failed in it: ..."
};

/// all_reduce, reduce, broadcast, all_gather and reduce_scatter between GPUs of one host, one after another, each after
/// a CollectiveAgreement. Their data go through the window in segments of two slots: each rank's stream copies its data
/// in, and takes what others have copied in, combined in the order of the ranks: results have the same bits everywhere.
/// Streams wait for each other by events; the host waits for nothing, but looks whether the others' hosts have recorded
/// them. An operation is complete when the GPU has done it.
class DeviceEngine {
 public:
  /// `memory` has a DeviceRankArea for each rank, zeros at first, and area_bytes() for each. `peers` outlives this.
  DeviceEngine(std::unique_ptr<DeviceWindow> window, std::shared_ptr<SharedMemory> memory, int rank, int ranks,
               const PeerProcesses& peers, const DeviceSegments& segments);
  ~DeviceEngine();
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;

  static std::int64_t area_bytes();
  static bool takes(CollectiveKind kind);
  Device device() const { return window_->stream().device(); }
  /// By which ranks agree on what is started here, and on what is started elsewhere.
  CollectiveAgreement agreement() const;

  /// For who waits for others to announce a collective.
  EndedPeer ended_peer() const { return ended_; }

  /// Of a collective that all ranks start here: behind `ready`. It goes on to its end, whoever waits for it or not.
  std::shared_ptr<DeviceOperation> start(const Collective& collective, const Event& ready);
  /// True if anything moved. An operation that fails keeps its fault.
  bool poll();
  /// For a rank that waits: throws Error where the process of a rank that it waits for has ended.
  void check_peers();
  /// Throws Error where a rank has failed, so that the collective would, too.
  void check_failures(const Collective& collective) const { check_failures(collective, number_ + 1); }
  /// What the first operation under way waits for: "GPU memory, for rank 3 to do its part"; "" where there is none.
  std::string waits_for() const;

 private:
  using Stage = DeviceOperation::Stage;

  DeviceRankArea& area(int rank) const;
  DeviceRankArea& mine() const { return area(rank_); }
  bool has_all(Counter DeviceRankArea::* counter, std::uint64_t segments) const;
  bool poll_issued();
  bool advance(DeviceOperation& operation);
  void begin(DeviceOperation& operation);
  bool advance_segments(DeviceOperation& operation);
  void check_failures(const Collective& collective, std::uint64_t number) const;
  void check_failures(const DeviceOperation& operation) const {
    check_failures(operation.collective, operation.number);
  }
  void fail_here(std::exception_ptr fault, std::string_view reason);
  void tell_failure(std::string_view reason);
  bool waits_for(const DeviceOperation& operation, int rank) const;
  const DeviceOperation* first() const;
  void park_window();
  void keep_everything();

  // device_moves.cpp
  void wait_for_others(DeviceMark mark, std::uint64_t segment);
  void copy_in(const DeviceOperation& operation, std::uint64_t segment);
  void reduce_part(const DeviceOperation& operation, std::uint64_t segment);
  void take(const DeviceOperation& operation, std::uint64_t segment);
  void take_result(const DeviceOperation& operation, std::uint64_t segment);
  std::int64_t scatter_bytes() const;
  std::int64_t segments_of(const Collective& collective) const;

  std::unique_ptr<DeviceWindow> window_;
  std::shared_ptr<SharedMemory> memory_;
  int rank_, ranks_;
  EndedPeer ended_;
  pid_t process_ = getpid();
  DeviceSegments segments_;
  std::deque<std::shared_ptr<DeviceOperation>> queue_, issued_;
  std::uint64_t number_ = 0;                            // of collectives that were started
  std::uint64_t copied_ = 0, reduced_ = 0, taken_ = 0;  // segments
  std::exception_ptr failure_;                          // nothing works after it
};

}  // namespace tandem::comm
