// What ranks whose GPUs share memory do when a GPU hangs, on a simulated one.
#include "tandem/comm/backends/native/device_engine.h"
#include "tandem/comm/backends/native/open_device_engine.h"
#include "tandem/comm/backends/native/parked_windows.h"
#include "tandem/core/cuda/check.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/timeline.h"
#include "tests/comm/mpi/device_groups.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

using Clock = std::chrono::steady_clock;
using Stage = DeviceOperation::Stage;

constexpr DeviceSegments kSmall{.bytes = 512};
constexpr std::size_t kSlack = std::size_t{1} << 20;  // half of a window

/// Engines without works and watchdogs.
struct Engines {
  Engines() : backend(make_backend()) { peers.exchange(*backend); }

  std::unique_ptr<DeviceEngine> open() {
    OpenedDevices opened = open_device_engine(*backend, kGpu, peers, kSmall);
    REQUIRE(opened.obstacle == "");
    return std::move(opened.engine);
  }
  void barrier() { backend->run({.kind = CollectiveKind::barrier}); }
  int rank() const { return backend->place().rank; }

  static std::unique_ptr<Backend> make_backend() {
    const auto mpi = make_process_group("mpi", environment());
    const std::vector<int> one_host(static_cast<std::size_t>(mpi->size()), 0);
    return make_native_backend(mpi->place(), one_host, comm::detail::make_mpi_transport(),
                               {.device_copies = DeviceCopies::off});
  }

  std::unique_ptr<Backend> backend;
  PeerProcesses peers;
};

std::shared_ptr<DeviceOperation> start_sum(DeviceEngine& engine, const Tensor& tensor) {
  Event ready;
  ready.record(current_stream(kGpu));
  return engine.start(in_place(CollectiveKind::all_reduce, Out(tensor)), ready);
}

/// Polls until `is_so()`, or for some seconds; whether it is.
template <typename Condition>
bool becomes(DeviceEngine& engine, int seconds, const Condition& is_so) {
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (!is_so() && Clock::now() < end) {
    engine.poll();
    std::this_thread::yield();
  }
  return is_so();
}

std::size_t free_bytes() {
  std::size_t free = 0, all = 0;
  TANDEM_CHECK_CUDA(cudaMemGetInfo(&free, &all));
  return free;
}

}  // namespace

TEST_CASE("a group that ends does not wait for a stream that hangs in another one", "[cuda][device window]") {
  if (environment().size() == 1) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  Engines engines;
  auto ended = engines.open();
  const auto other = engines.open();
  const Tensor tensor = Tensor::full({100}, 1.0, {.device = kGpu});
  if (engines.rank() == 1) ended.reset();
  engines.barrier();
  std::unique_lock hanging(simulator::runtime_mutex(), std::defer_lock);
  if (engines.rank() == 1) hanging.lock();
  const auto sum = start_sum(*other, tensor);
  CHECK(becomes(*other, 20, [&] { return sum->stage >= Stage::issued; }));
  engines.barrier();
  if (engines.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::seconds(3));
    hanging.unlock();
  } else {
    const auto begin = Clock::now();
    ended.reset();
    CHECK(Clock::now() - begin < std::chrono::seconds(2));
    CHECK(sum->stage == Stage::issued);
  }
  CHECK(becomes(*other, 20, [&] { return sum->is_complete(); }));
  CHECK(sum->fault == nullptr);
  engines.barrier();
}

TEST_CASE("groups that end with works that nobody waited for leave no memory of the GPU behind",
          "[cuda][device window]") {
  if (environment().size() == 1) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  Engines engines;
  const Tensor tensor = Tensor::full({100}, 1.0, {.device = kGpu});
  const auto look_until_freed = [&] {
    engines.barrier();
    const auto end = Clock::now() + std::chrono::seconds(20);
    while (look_after_parked_windows() > 0 && Clock::now() < end) std::this_thread::yield();
    CHECK(look_after_parked_windows() == 0);
    engines.barrier();
  };
  look_until_freed();
  const std::size_t before = free_bytes();
  for (int i = 0; i < 10; ++i) {
    const auto engine = engines.open();
    const auto sum = start_sum(*engine, tensor);
    CHECK(becomes(*engine, 20, [&] { return sum->stage >= Stage::issued; }));
  }
  look_until_freed();
  CHECK(before <= free_bytes() + kSlack);
}

TEST_CASE("a device window leaves the thread's device as it was", "[cuda][device window]") {
  const RestoreSettings restore;
  simulator::settings().devices = 2;
  TANDEM_CHECK_CUDA(cudaSetDevice(1));
  const auto current = [] {
    int device = -1;
    TANDEM_CHECK_CUDA(cudaGetDevice(&device));
    return device;
  };
  auto window = make_device_window(kGpu, 0, 1, 256);
  CHECK(current() == 1);
  window->open(std::vector<std::string>{window->handle()});
  CHECK(current() == 1);
  window->close();
  CHECK(current() == 1);
  window.reset();
  CHECK(current() == 1);
  TANDEM_CHECK_CUDA(cudaSetDevice(0));
}

// The last one: its streams are at work until the process ends, and so no window is freed any more.
TEST_CASE("a rank that fails while its GPU hangs ends what others wait for on their GPUs", "[cuda][device window]") {
  if (environment().size() == 1) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  Engines engines;
  const auto engine = engines.open();
  const Tensor tensor = Tensor::full({100}, 1.0, {.device = kGpu});
  engines.barrier();
  std::unique_lock hanging(simulator::runtime_mutex(), std::defer_lock);
  if (engines.rank() == 1) hanging.lock();  // of its streams
  const auto first = start_sum(*engine, tensor);
  CHECK(becomes(*engine, 20, [&] { return first->stage >= Stage::issued; }));
  engines.barrier();
  if (engines.rank() == 1) {
    CHECK(first->stage == Stage::issued);
    Collective wrong = in_place(CollectiveKind::all_reduce, Out(tensor));
    const float on_host = 1.0F;
    wrong.input = &on_host;
    CHECK(engine->start(wrong, Event())->fault != nullptr);
  } else {
    CHECK(becomes(*engine, 20, [&] { return first->is_complete(); }));
    std::string text = "no error";
    try {
      if (first->fault) std::rethrow_exception(first->fault);
    } catch (const Error& error) {
      text = error.what();
    }
    CHECK_THAT(text, ContainsText("all_reduce sum f32[100]: rank 1 failed in it: CUDA: "));
  }
  engines.barrier();
}
