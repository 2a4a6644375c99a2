// Device memory from the driver's stream-ordered pool: the driver keeps freed blocks and hands them out again in the
// order of the streams, so no cache of our own is needed.
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/device_query.h"

#include <limits>
#include <mutex>
#include <vector>

namespace tandem::cuda {

namespace {

class DeviceAllocator final : public Allocator {
 public:
  explicit DeviceAllocator(Device device) : device_(device) {
    int has_pools = 0;
    TANDEM_CHECK_CUDA(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, device.index));
    require(has_pools != 0, "device {}: its driver has no memory pools, which Tandem needs; use another device",
            name_of(device));
    TANDEM_CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool_, device.index));
    // The driver would give everything back at each synchronisation; a training step wants it again at once.
    std::uint64_t kept = std::numeric_limits<std::uint64_t>::max();
    TANDEM_CHECK_CUDA(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &kept));
  }

  void* allocate(std::int64_t bytes) override {
    const cudaStream_t stream = cuda::current_stream(device_);
    void* block = nullptr;
    cudaError_t status = cudaMallocAsync(&block, static_cast<std::size_t>(bytes), stream);
    if (status == cudaErrorMemoryAllocation && !is_recording()) {
      // What other streams have freed comes back once they are done.
      cudaGetLastError();
      release_cached();
      status = cudaMallocAsync(&block, static_cast<std::size_t>(bytes), stream);
    }
    if (status == cudaErrorMemoryAllocation) fail_for(bytes);
    throw_if_failed(status, "cudaMallocAsync", std::source_location::current());
    if (is_recording()) note_taken(block, bytes, is_recorded(tandem::current_stream(device_)));
    return block;
  }

  void deallocate(void* block, std::int64_t bytes, std::span<const Stream> streams) noexcept override {
    if (may_free_now(block)) return free_now(block, streams);
    const std::vector<Stream> all(streams.begin(), streams.end());
    free_later(block, bytes, [this, block, all] { free_now(block, all); });
  }

  std::int64_t cached_bytes() const override {
    return attribute(cudaMemPoolAttrReservedMemCurrent) - attribute(cudaMemPoolAttrUsedMemCurrent);
  }

  void release_cached() noexcept override {
    if (is_recording()) return;  // it waits
    const bool failed = cudaSetDevice(device_.index) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess ||
                        cudaMemPoolTrimTo(pool_, 0) != cudaSuccess ||
                        cudaDeviceGraphMemTrim(device_.index) != cudaSuccess;  // that of graphs is in no pool of ours
    if (failed) cudaGetLastError();
  }

 private:
  void free_now(void* block, std::span<const Stream> streams) const noexcept {
    // Nothing here may throw. Calls fail only once the context is lost or the process ends: the block is gone then.
    const auto home = static_cast<cudaStream_t>(streams.front().native());
    bool failed = cudaSetDevice(device_.index) != cudaSuccess;
    for (const Stream& user : streams.subspan(1)) failed = !wait_for(home, user) || failed;
    failed = cudaFreeAsync(block, home) != cudaSuccess || failed;
    if (failed) cudaGetLastError();
  }

  static bool wait_for(cudaStream_t home, const Stream& user) noexcept {
    cudaEvent_t event = nullptr;
    if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess) return false;
    const bool waits = cudaEventRecord(event, static_cast<cudaStream_t>(user.native())) == cudaSuccess &&
                       cudaStreamWaitEvent(home, event, 0) == cudaSuccess;
    return cudaEventDestroy(event) == cudaSuccess && waits;
  }

  std::int64_t attribute(cudaMemPoolAttr which) const {
    std::uint64_t value = 0;
    TANDEM_CHECK_CUDA(cudaMemPoolGetAttribute(pool_, which, &value));
    return static_cast<std::int64_t>(value);
  }

  [[noreturn]] void fail_for(std::int64_t bytes) const {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail("out of memory on {}: {} ({} bytes) asked for, {} of {} free; in use: {}; try a smaller batch size",
         name_of(device_), format_memory(bytes), bytes, format_memory(static_cast<std::int64_t>(free)),
         format_memory(static_cast<std::int64_t>(total)), largest_memory_tags(device_));
  }

  Device device_;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace

Allocator& device_allocator(int device) {
  struct Slot {
    std::once_flag once;
    DeviceAllocator* allocator = nullptr;
  };
  // Never destroyed: storages in static objects may outlive every other static.
  static auto& slots = *new std::vector<Slot>(static_cast<std::size_t>(cuda_device_count()));
  Slot& slot = slots[static_cast<std::size_t>(device)];
  std::call_once(slot.once, [&] { slot.allocator = new DeviceAllocator(Device{DeviceType::cuda, device}); });
  return *slot.allocator;
}

void set_bytes(Device device, void* to, int value, std::int64_t bytes) {
  TANDEM_CHECK_CUDA(cudaMemsetAsync(to, value, static_cast<std::size_t>(bytes), cuda::current_stream(device)));
}

}  // namespace tandem::cuda
