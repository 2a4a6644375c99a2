// Collectives through memory that the GPUs of all ranks see: each rank's GPU reads what others' have put there.
#pragma once

#include "tandem/comm/backends/native/device_segments.h"
#include "tandem/comm/collective.h"
#include "tandem/comm/transports/cuda_ipc/device_window.h"
#include "tandem/comm/transports/shared_memory/peer_processes.h"
#include "tandem/comm/transports/shared_memory/window.h"
#include "tandem/core/stream.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>

namespace tandem::comm {

/// A collective under way.
struct DeviceOperation {
  /// `issued`: the stream has all of it.
  enum class Stage : std::uint8_t { queued, offered, moving, issued, complete };

  Collective collective;
  Event ready = Event();  ///< what the tensors' stream did before
  Event done = Event();   ///< behind the last segment
  Stage stage = Stage::queued;
  std::uint64_t ordinal = 0;         ///< among all collectives of the group
  std::uint64_t number = 0;          ///< among those of the device window, from 1
  std::uint64_t first = 0, end = 0;  ///< its segments among all that go through the window
  bool by_parts = false;             ///< each rank reduces a part, and others take it
  std::exception_ptr fault = {};     ///< why it failed: it is complete then

  bool is_complete() const { return stage == Stage::complete; }
};

/// What a rank tells the others by host memory.
struct DeviceRankArea {
  struct alignas(kSharedLineBytes) OfferCell {
    std::atomic<std::uint64_t> number{0};  ///< of the collective; written last
    Offer offer;
  };
  OfferCell cells[2];  ///< take turns as Cell does
  Counter copied;      ///< segments whose mark DeviceMark::copied is recorded; `reduced` and `taken` alike
  Counter reduced;
  Counter taken;
  /// Of the last collectives that the rank has started, at their ordinals modulo kPlaces: twice the ordinal, and 1 more
  /// where its tensors are on the GPU.
  static constexpr std::size_t kPlaces = 64;
  std::atomic<std::uint64_t> places[kPlaces];
  std::atomic<bool> has_failed{false};
  std::atomic<bool> has_closed{false};  ///< it has given the others' memory back
};

/// all_reduce, reduce, broadcast, all_gather and reduce_scatter between GPUs of one host. A collective begins when all
/// ranks have offered theirs, one after another, as in WindowEngine. Its data go through the window in segments of two
/// slots: each rank's stream copies its data in, and takes what others have copied in, combined in the order of the
/// ranks: results have the same bits everywhere. Streams wait for each other by events; the host waits for nothing, but
/// looks whether the others' hosts have recorded them. An operation is complete when the GPU has done it.
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

  /// Behind all that the current stream holds now. It goes on to its end, whoever waits for it or not.
  std::shared_ptr<DeviceOperation> start(const Collective& collective);
  /// For those that are started elsewhere: the ranks' collectives are counted alike.
  void count_collective_of_host() { note_place(false); }
  /// True if anything moved. An operation that fails, as where ranks do not call the same collective, keeps its fault.
  bool poll();
  /// For a rank that waits: throws Error where the process of a rank that it waits for has ended.
  void check_peers();
  /// What the first operation under way waits for: "GPU memory, for rank 3 to enter"; "" where there is none.
  std::string waits_for() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Stage = DeviceOperation::Stage;

  DeviceRankArea& area(int rank) const;
  DeviceRankArea& mine() const { return area(rank_); }
  void note_place(bool is_on_gpu);
  bool has_offered(const DeviceOperation& operation, int rank) const;
  bool has_all(Counter DeviceRankArea::* counter, std::uint64_t segments) const;
  bool poll_issued();
  bool advance(DeviceOperation& operation);
  void offer(DeviceOperation& operation);
  bool try_begin(DeviceOperation& operation);
  bool advance_segments(DeviceOperation& operation);
  void wait_for_others(DeviceMark mark, std::uint64_t segment);
  void copy_in(const DeviceOperation& operation, std::uint64_t segment);
  void reduce_part(const DeviceOperation& operation, std::uint64_t segment);
  void take(const DeviceOperation& operation, std::uint64_t segment);
  void take_result(const DeviceOperation& operation, std::uint64_t segment);
  std::int64_t scatter_bytes() const;
  std::int64_t segments_of(const Collective& collective) const;
  void check_failures(const DeviceOperation& operation) const;
  void fail_here(std::exception_ptr fault);
  bool waits_for(const DeviceOperation& operation, int rank) const;
  const DeviceOperation* first() const;

  std::unique_ptr<DeviceWindow> window_;
  std::shared_ptr<SharedMemory> memory_;
  int rank_, ranks_;
  const PeerProcesses& peers_;
  pid_t process_ = getpid();
  DeviceSegments segments_;
  std::deque<std::shared_ptr<DeviceOperation>> queue_, issued_;
  std::uint64_t ordinal_ = 0;                           // of collectives that were started, here or elsewhere
  std::uint64_t number_ = 0;                            // of collectives that were offered
  std::uint64_t copied_ = 0, reduced_ = 0, taken_ = 0;  // segments
  std::exception_ptr failure_;                          // of a call of CUDA's: nothing works after it
  std::uint64_t idle_looks_ = 0;
  Clock::time_point ended_since_;
};

}  // namespace tandem::comm
