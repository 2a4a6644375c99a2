// Pinned memory that streams still use: how often they are asked for it, streams that are being recorded, and in whose
// context it is taken.
#include "tandem/core/allocator.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/tensor.h"
#include "tandem/simulator/runtime.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <set>
#include <thread>

using namespace tandem;
using namespace tandem::test;

namespace {

Tensor pinned_floats(std::int64_t count) { return Tensor::empty({count}, {.pinned = true}); }

}  // namespace

TEST_CASE("pinned memory asks each stream for its first mark only", "[cuda]") {
  if (!has_gpu()) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  pinned_allocator().release_cached();
  constexpr int kBlocks = 100, kFills = 50;
  const Tensor there = Tensor::zeros({1024}, {.device = kGpu});
  const std::int64_t before = simulator::runtime_counts().event_queries;
  for (int i = 0; i < kBlocks; ++i) {
    const Tensor here = pinned_floats(1024);
    here.fill(i);
    for (int k = 0; k < kFills; ++k) there.fill(k);  // what the stream has to do before the copy
    there.copy_from_async(here);
  }
  const std::int64_t queries = simulator::runtime_counts().event_queries - before;
  INFO(queries << " queries");
  CHECK(queries <= 2 * kBlocks);
  CHECK(there.narrow(0, 77, 1).item() == kBlocks - 1);

  // Of many streams as well, the blocks come back.
  std::set<const void*> blocks;
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.emplace_back(kGpu);
  for (int i = 0; i < 40; ++i) {
    const Tensor here = pinned_floats(100'000);
    blocks.insert(here.raw_data());
    for (const Stream& stream : streams)
      if (i % 2 == 0 || stream == streams[static_cast<std::size_t>(i) % 4]) here.storage()->record_stream(stream);
  }
  synchronize(kGpu);
  std::vector<Tensor> again;
  for (std::size_t i = 0; i < blocks.size(); ++i) again.push_back(pinned_floats(100'000));
  for (const Tensor& one : again) CHECK(blocks.count(one.raw_data()) == 1);
}

TEST_CASE("pinned memory that is freed while its stream is recorded comes back afterwards", "[cuda]") {
  if (!has_gpu()) return;
  pinned_allocator().release_cached();
  const Stream stream(kGpu);
  const auto native = static_cast<cudaStream_t>(stream.native());
  const void* block = nullptr;
  {
    const Tensor here = pinned_floats(5000);
    block = here.raw_data();
    here.storage()->record_stream(stream);
    // Relaxed, as this thread goes on to ask for events.
    CHECK(cudaStreamBeginCapture(native, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  }
  CHECK(pinned_floats(5000).raw_data() != block);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(native, &graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  pinned_allocator().release_cached();
  CHECK(pinned_allocator().cached_bytes() == 0);
}

TEST_CASE("work that is recorded refuses copies from and to the host, and pinned memory", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::zeros({10}, {.device = kGpu}), here = Tensor::zeros({10}), pinned = pinned_floats(10);
  pinned.fill(1.0);
  {
    const cuda::RecordingScope scope;
    for (const Tensor* host : {&here, &pinned}) {
      CHECK_THAT(error_of([&] { there.copy_from_async(*host); }),
                 ContainsText("work graph: a copy from cpu to cuda:0 cannot be recorded; do it before"));
      CHECK_THAT(error_of([&] { host->copy_from_async(there); }),
                 ContainsText("a copy from cuda:0 to cpu cannot be recorded"));
    }
    CHECK_THAT(error_of([] { pinned_floats(10); }), ContainsText("taking pinned memory cannot be recorded"));
    Tensor::empty({10}, {.device = kGpu}).copy_from_async(there);
  }
  there.copy_from(pinned);
  CHECK(there.to_vector<float>() == std::vector<float>(10, 1.0F));
}

TEST_CASE("copies take pinned memory in the context of their own device", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor there = Tensor::full({64, 64}, 2.0, {.device = kGpu}), here = Tensor::zeros({64, 64});
  const auto contexts_by = [](auto&& work) {
    const std::int64_t before = simulator::runtime_counts().default_contexts;
    std::thread(work).join();
    return simulator::runtime_counts().default_contexts - before;
  };
  CHECK(contexts_by([&] { there.copy_from(here.transpose(0, 1)); }) == 0);
  CHECK(contexts_by([&] { here.transpose(0, 1).copy_from(there); }) == 0);
  CHECK(contexts_by([&] { there.transpose(0, 1).copy_from(here); }) == 0);
  const Stream stream(kGpu);
  CHECK(contexts_by([&] {
          const StreamScope scope(stream);
          pinned_floats(200'000);
        }) == 0);
}
