// Device memory: accounting, poisoning, the pool, and running out.
#include "tandem/core/allocator.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <thread>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("memory sizes are told in the unit that fits") {
  CHECK(format_memory(0) == "0 bytes");
  CHECK(format_memory(1023) == "1023 bytes");
  CHECK(format_memory(1536) == "1.5 KiB");
  CHECK(format_memory(std::int64_t{3} << 40) == "3.0 TiB");
  CHECK(format_memory(std::int64_t{5} << 50) == "5120.0 TiB");
}

TEST_CASE("the tags with the most bytes come first") {
  const MemoryTagScope scope(MemoryTag::comm);
  const Tensor most = Tensor::empty({std::int64_t{1} << 24});
  const MemoryTagScope inner(MemoryTag::workspace);
  const Tensor some = Tensor::empty({std::int64_t{1} << 20});
  CHECK_THAT(largest_memory_tags(Device{}), ContainsText("comm 64.0 MiB, "));
  CHECK_THAT(largest_memory_tags(Device{}), ContainsText("workspace 4.0 MiB"));
}

TEST_CASE("bytes are counted for the device they are on", "[cuda]") {
  if (!has_gpu()) return;
  reset_peak_memory();
  const MemoryStats cpu = memory_stats(), gpu = memory_stats(kGpu);
  {
    const MemoryTagScope scope(MemoryTag::optimizer);
    const Tensor a = Tensor::empty({1000}, {.device = kGpu});
    CHECK(memory_stats(kGpu).current_of(MemoryTag::optimizer) - gpu.current_of(MemoryTag::optimizer) == 4000);
    a.storage()->set_tag(MemoryTag::comm);
    CHECK(memory_stats(kGpu).current_of(MemoryTag::optimizer) == gpu.current_of(MemoryTag::optimizer));
    CHECK(memory_stats(kGpu).current_of(MemoryTag::comm) - gpu.current_of(MemoryTag::comm) == 4000);
    CHECK(memory_stats().current == cpu.current);
  }
  CHECK(memory_stats(kGpu).current == gpu.current);
  CHECK(memory_stats(kGpu).peak_total - gpu.current_total == 4000);
  CHECK(memory_stats().peak_total == cpu.current_total);
  reset_peak_memory();
  CHECK(memory_stats(kGpu).peak_total == gpu.current_total);
}

TEST_CASE("poisoned device memory starts as NaN", "[cuda]") {
  if (!has_gpu()) return;
  const PoisonScope poison;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const double value : Tensor::empty({7}, {.dtype = dtype, .device = kGpu}).to_vector<double>())
      CHECK(std::isnan(value));
  }
}

TEST_CASE("freed device memory stays in the pool until it is released", "[cuda]") {
  if (!has_gpu()) return;
  Allocator& allocator = allocator_for(kGpu);
  CHECK(&allocator == &allocator_for(kGpu));
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  allocator.release_cached();
  const std::int64_t before = allocator.cached_bytes();
  {
    const Tensor tensor = Tensor::zeros({kBytes}, {.dtype = DType::u8, .device = kGpu});
  }
  synchronize(kGpu);
  CHECK(allocator.cached_bytes() - before >= kBytes);
  allocator.release_cached();
  CHECK(allocator.cached_bytes() <= before);
  {
    const Tensor tensor = Tensor::zeros({kBytes}, {.dtype = DType::u8, .device = kGpu});
  }
  allocator.release_cached();  // what the stream has not freed yet as well
  synchronize(kGpu);
  CHECK(allocator.cached_bytes() <= before);
}

TEST_CASE("running out of device memory says how much was asked for, what is free and who has the rest", "[cuda]") {
  if (!has_gpu()) return;
  const MemoryTagScope scope(MemoryTag::gradients);
  const Tensor held = Tensor::empty({std::int64_t{1} << 20}, {.device = kGpu});
  const std::int64_t before = memory_stats(kGpu).current_total;
  const std::string error =
      error_of([] { Tensor::empty({std::int64_t{1} << 45}, {.dtype = DType::u8, .device = kGpu}); });
  CHECK_THAT(error, ContainsText("out of memory on cuda:0: 32.0 TiB (35184372088832 bytes) asked for"));
  CHECK_THAT(error, ContainsText("free; in use: "));
  CHECK_THAT(error, ContainsText("gradients "));
  CHECK(memory_stats(kGpu).current_total == before);
  // The failure leaves nothing behind that later calls stumble over.
  CHECK(Tensor::full({3}, 2.5, {.device = kGpu}).to_vector<float>() == std::vector<float>(3, 2.5f));
}

TEST_CASE("pinned blocks come back to use, but not while a copy reads them", "[cuda]") {
  if (!has_gpu()) return;
  Allocator& allocator = pinned_allocator();
  allocator.release_cached();
  constexpr std::int64_t kCount = 1 << 20;
  const void* first = nullptr;
  {
    const Tensor pinned = Tensor::empty({kCount}, {.pinned = true});
    first = pinned.raw_data();
  }
  CHECK(allocator.cached_bytes() >= 4 * kCount);
  CHECK(Tensor::empty({kCount}, {.pinned = true}).raw_data() == first);

  for (int round = 0; round < 20; ++round) {
    const Tensor device = Tensor::empty({kCount}, {.device = kGpu});
    {
      const Tensor pinned = Tensor::full({kCount}, round + 0.25, {.pinned = true});
      device.copy_from_async(pinned);
    }
    const Tensor next = Tensor::full({kCount}, -1.0, {.pinned = true});
    const auto values = device.to_vector<float>();
    CHECK(std::count(values.begin(), values.end(), static_cast<float>(round + 0.25)) == kCount);
  }
  synchronize(kGpu);
  allocator.release_cached();
  CHECK(allocator.cached_bytes() == 0);
}

TEST_CASE("tensors may be freed by another thread than the one that made them", "[cuda]") {
  if (!has_gpu()) return;
  for (int round = 0; round < 8; ++round) {
    Tensor tensor = Tensor::full({1 << 16}, round, {.device = kGpu});
    std::thread([moved = std::move(tensor), round]() mutable {
      CHECK(moved.narrow(0, 77, 1).item() == round);
      moved = Tensor();
    }).join();
  }
}
