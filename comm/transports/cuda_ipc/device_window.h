// The device window: memory of each rank's GPU that the GPUs of all ranks of a host read, by CUDA IPC.
#pragma once

#include "tandem/comm/collective.h"
#include "tandem/core/stream.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tandem::comm {

/// What a rank's stream has passed, of one segment.
enum class DeviceMark : std::uint8_t {
  copied,   ///< its data are in its slot
  reduced,  ///< its part of the result is in its result slot
  taken,    ///< it reads nothing of this segment any more
};

/// How many there are.
constexpr int kDeviceMarks = 3;

/// Of one rank. Everything is enqueued on its stream, and nothing waits. Segments are numbered by all ranks alike, and
/// take turns in two slots. Others open the memory, and the events that are its marks; who waits for a mark does so
/// after he has learned, by the host, that it was recorded, and before it is recorded for the next segment in the slot.
class DeviceWindow {
 public:
  static constexpr std::uint64_t kSlots = 2;

  virtual ~DeviceWindow() = default;

  /// What others open() it by: one line of text.
  virtual std::string handle() const = 0;
  /// Those of all ranks, by rank. Throws Error, which names the rank, where one cannot be opened.
  virtual void open(std::span<const std::string> handles) = 0;
  /// Gives others' memory back, after all that the stream holds is done. Each rank frees its own, by the destructor,
  /// when all others have done so: it waits for all streams of the process.
  virtual void close() = 0;

  virtual const Stream& stream() const = 0;
  /// Of any rank, by addresses of this process: slots begin at multiples of 256 bytes.
  /// @{
  virtual std::byte* input_slot(int rank, std::uint64_t segment) const = 0;
  virtual std::byte* result_slot(int rank, std::uint64_t segment) const = 0;
  /// @}

  /// Of this rank.
  virtual void record(DeviceMark mark, std::uint64_t segment) = 0;
  /// Lets the stream wait for another rank's.
  virtual void wait_for(int rank, DeviceMark mark, std::uint64_t segment) = 0;
  /// Between any two addresses of GPU memory that this process has.
  virtual void copy(const void* from, void* to, std::int64_t bytes) = 0;
  /// Lets the stream do nothing for so long.
  virtual void hold_up(std::chrono::milliseconds time) = 0;
  /// All ranks' elements from byte `begin` of their input slots on, in the order of the ranks.
  virtual void reduce(std::uint64_t segment, std::int64_t begin, std::int64_t count, DType dtype, ReduceOp op,
                      void* output) = 0;
};

/// Bytes of a result slot: the most that part_units() gives a rank of a segment.
std::int64_t result_slot_bytes(std::int64_t segment_bytes, int ranks);

/// Makes this rank's memory, of `segment_bytes` a slot, which is a multiple of 256. Throws Error where the GPU cannot
/// be read by other processes. In builds with CUDA only.
std::unique_ptr<DeviceWindow> make_device_window(Device device, int rank, int ranks, std::int64_t segment_bytes);

/// "" unless the GPU with this UUID is one that this process sees and that `device` cannot read. In builds with CUDA
/// only.
std::string obstacle_to_peer(Device device, const std::string& uuid);

}  // namespace tandem::comm
