// Memory of cudaMalloc, as that of the pool has no such handles, and events that processes share.
#include "tandem/comm/transports/cuda_ipc/device_window.h"
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/kernels/reduce/combine_buffers.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace tandem::comm {

namespace {

constexpr std::size_t kEvents = kDeviceMarks * DeviceWindow::kSlots;

/// What a rank tells the others.
struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t events[kEvents];
};

std::string hexadecimal(const Handles& handles) {
  std::string text;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&handles);
  for (std::size_t i = 0; i < sizeof handles; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

Handles from_hexadecimal(const std::string& text) {
  Handles handles{};
  require(text.size() == 2 * sizeof handles, "GPU memory of another process: a handle of {} characters", text.size());
  auto* const bytes = reinterpret_cast<unsigned char*>(&handles);
  for (std::size_t i = 0; i < sizeof handles; ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handles;
}

/// Where it throws, the runtime forgets the error: who goes on without a window launches kernels, and asks for errors.
template <typename Body>
auto forgetting_errors(Body&& body) {
  try {
    return body();
  } catch (...) {
    cudaGetLastError();
    throw;
  }
}

/// Brings back the thread's current device at its end.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = device;
    if (before_ != device) cudaSetDevice(device);
    is_other_ = before_ != device;
  }
  ~DeviceScope() {
    if (is_other_) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
  bool is_other_ = false;
};

std::size_t event_index(DeviceMark mark, std::uint64_t segment) {
  return static_cast<std::size_t>(mark) * DeviceWindow::kSlots + segment % DeviceWindow::kSlots;
}

kernels::Combination combination_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::product:
      return kernels::Combination::product;
    case ReduceOp::min:
      return kernels::Combination::min;
    case ReduceOp::max:
      return kernels::Combination::max;
    default:
      return kernels::Combination::sum;
  }
}

class CudaDeviceWindow final : public DeviceWindow {
 public:
  CudaDeviceWindow(Device device, int rank, int ranks, std::int64_t segment_bytes)
      : device_(device),
        rank_(rank),
        segment_bytes_(segment_bytes),
        result_bytes_(result_slot_bytes(segment_bytes, ranks)),
        stream_(device),
        peers_(static_cast<std::size_t>(ranks)) {
    int has_events = 0;
    TANDEM_CHECK_CUDA(cudaDeviceGetAttribute(&has_events, cudaDevAttrIpcEventSupport, device.index));
    require(has_events != 0, "{} has no events between processes", name_of(device));
    Peer& mine = peers_[static_cast<std::size_t>(rank)];
    try {
      void* memory = nullptr;
      // Whole pages of their own: what is exported is all of the block that an allocation is a part of.
      constexpr std::size_t kPage = std::size_t{2} << 20;
      const std::size_t bytes = kSlots * static_cast<std::size_t>(segment_bytes_ + result_bytes_);
      TANDEM_CHECK_CUDA(cudaMalloc(&memory, (bytes + kPage - 1) / kPage * kPage));
      mine.memory = static_cast<std::byte*>(memory);
      for (cudaEvent_t& event : mine.events)
        TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
    } catch (...) {
      free_own();
      throw;
    }
  }

  ~CudaDeviceWindow() override {
    const DeviceScope scope(device_.index);
    close_peers();
    free_own();
  }
  CudaDeviceWindow(const CudaDeviceWindow&) = delete;
  CudaDeviceWindow& operator=(const CudaDeviceWindow&) = delete;

  std::string handle() const override {
    const Peer& mine = peers_[static_cast<std::size_t>(rank_)];
    return forgetting_errors([&] {
      Handles handles{};
      TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&handles.memory, mine.memory));
      for (std::size_t i = 0; i < kEvents; ++i)
        TANDEM_CHECK_CUDA(cudaIpcGetEventHandle(&handles.events[i], mine.events[i]));
      return hexadecimal(handles);
    });
  }

  void open(std::span<const std::string> handles) override {
    const DeviceScope scope(device_.index);
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      if (static_cast<int>(rank) == rank_) continue;
      try {
        forgetting_errors([&] { open_peer(peers_[rank], from_hexadecimal(handles[rank])); });
      } catch (const Error& error) {
        fail("cannot open the GPU memory of rank {}: {}", rank, error.what());
      }
    }
    forgetting_errors([&] { upload_addresses(); });
  }

  void close() override {
    const DeviceScope scope(device_.index);
    stream_.synchronize();
    close_peers();
  }

  const Stream& stream() const override { return stream_; }
  std::byte* input_slot(int rank, std::uint64_t segment) const override {
    return peers_[static_cast<std::size_t>(rank)].memory + slot(segment) * segment_bytes_;
  }
  std::byte* result_slot(int rank, std::uint64_t segment) const override {
    return peers_[static_cast<std::size_t>(rank)].memory + static_cast<std::int64_t>(kSlots) * segment_bytes_ +
           slot(segment) * result_bytes_;
  }

  void record(DeviceMark mark, std::uint64_t segment) override {
    TANDEM_CHECK_CUDA(
        cudaEventRecord(peers_[static_cast<std::size_t>(rank_)].events[event_index(mark, segment)], queue()));
  }
  void wait_for(int rank, DeviceMark mark, std::uint64_t segment) override {
    TANDEM_CHECK_CUDA(
        cudaStreamWaitEvent(queue(), peers_[static_cast<std::size_t>(rank)].events[event_index(mark, segment)], 0));
  }
  void copy(const void* from, void* to, std::int64_t bytes) override {
    if (from == to || bytes == 0) return;
    TANDEM_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, queue()));
  }
  void hold_up(std::chrono::milliseconds time) override {
    const auto sleep = [](void* milliseconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(reinterpret_cast<std::intptr_t>(milliseconds)));
    };
    TANDEM_CHECK_CUDA(
        cudaLaunchHostFunc(queue(), sleep, reinterpret_cast<void*>(static_cast<std::intptr_t>(time.count()))));
  }
  void reduce(std::uint64_t segment, std::int64_t begin, std::int64_t count, DType dtype, ReduceOp op,
              void* output) override {
    const double divisor = op == ReduceOp::average ? static_cast<double>(peers_.size()) : 1.0;
    kernels::cuda::combine_buffers(stream_,
                                   {.buffers = addresses_ + slot(segment) * static_cast<std::int64_t>(peers_.size()),
                                    .buffer_count = static_cast<int>(peers_.size()),
                                    .begin = begin,
                                    .count = count,
                                    .dtype = dtype},
                                   combination_of(op), divisor, output);
  }

 private:
  struct Peer {
    std::byte* memory = nullptr;
    cudaEvent_t events[kEvents] = {};
  };

  static std::int64_t slot(std::uint64_t segment) { return static_cast<std::int64_t>(segment % kSlots); }
  cudaStream_t queue() const { return static_cast<cudaStream_t>(stream_.native()); }

  static void open_peer(Peer& peer, const Handles& handles) {
    void* memory = nullptr;
    TANDEM_CHECK_CUDA(cudaIpcOpenMemHandle(&memory, handles.memory, cudaIpcMemLazyEnablePeerAccess));
    peer.memory = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < kEvents; ++i)
      TANDEM_CHECK_CUDA(cudaIpcOpenEventHandle(&peer.events[i], handles.events[i]));
  }

  /// Where all ranks' input slots begin, which kernels look up: by slot, then by rank.
  void upload_addresses() {
    std::vector<const void*> addresses;
    for (std::uint64_t segment = 0; segment < kSlots; ++segment)
      for (std::size_t rank = 0; rank < peers_.size(); ++rank)
        addresses.push_back(input_slot(static_cast<int>(rank), segment));
    const std::size_t bytes = addresses.size() * sizeof(void*);
    void* memory = nullptr;
    TANDEM_CHECK_CUDA(cudaMalloc(&memory, bytes));
    addresses_ = static_cast<const void**>(memory);
    TANDEM_CHECK_CUDA(cudaMemcpyAsync(memory, addresses.data(), bytes, cudaMemcpyHostToDevice, queue()));
    stream_.synchronize();
  }

  /// Errors are no news for who gives up.
  static void destroy_events(Peer& peer) {
    for (cudaEvent_t& event : peer.events)
      if (event != nullptr) cudaEventDestroy(std::exchange(event, nullptr));
  }
  void close_peers() {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      if (static_cast<int>(rank) == rank_) continue;
      destroy_events(peers_[rank]);
      if (peers_[rank].memory != nullptr) cudaIpcCloseMemHandle(std::exchange(peers_[rank].memory, nullptr));
    }
  }
  void free_own() {
    Peer& mine = peers_[static_cast<std::size_t>(rank_)];
    destroy_events(mine);
    if (addresses_ != nullptr) cudaFree(static_cast<void*>(std::exchange(addresses_, nullptr)));
    if (mine.memory != nullptr) cudaFree(std::exchange(mine.memory, nullptr));
    cudaGetLastError();
  }

  Device device_;
  int rank_;
  std::int64_t segment_bytes_, result_bytes_;
  Stream stream_;
  std::vector<Peer> peers_;  // by rank; this one's are its own
  const void** addresses_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceWindow> make_device_window(Device device, int rank, int ranks, std::int64_t segment_bytes) {
  const DeviceScope scope(device.index);
  return forgetting_errors([&] { return std::make_unique<CudaDeviceWindow>(device, rank, ranks, segment_bytes); });
}

std::string obstacle_to_peer(Device device, const std::string& uuid) {
  for (const DeviceDescription& other : list_devices()) {
    if (other.device.type != DeviceType::cuda || other.uuid != uuid || other.device == device) continue;
    int can = 0;
    forgetting_errors([&] { TANDEM_CHECK_CUDA(cudaDeviceCanAccessPeer(&can, device.index, other.device.index)); });
    if (can == 0)
      return fmt::format("{} cannot read the memory of {} ({})", name_of(device), name_of(other.device), other.name);
  }
  return "";
}

}  // namespace tandem::comm
