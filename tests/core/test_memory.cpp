// Memory accounting, poisoning, and the CPU allocator's cache.
#include "tandem/core/cpu_allocator.h"
#include "tandem/core/memory.h"
#include "tandem/core/tensor.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/forked.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

using namespace tandem;
using namespace tandem::test;

TEST_CASE("bytes are counted by tag, with a peak per tag") {
  reset_peak_memory();
  const MemoryStats before = memory_stats();
  {
    const MemoryTagScope scope(MemoryTag::optimizer);
    CHECK(current_memory_tag() == MemoryTag::optimizer);
    const Tensor a = Tensor::empty({1000});
    {
      const Tensor b = Tensor::empty({500});
    }
    CHECK(memory_stats().current_of(MemoryTag::optimizer) - before.current_of(MemoryTag::optimizer) == 4000);
    a.storage()->set_tag(MemoryTag::comm);
    CHECK(memory_stats().current_of(MemoryTag::comm) - before.current_of(MemoryTag::comm) == 4000);
  }
  CHECK(current_memory_tag() == MemoryTag::activations);
  const MemoryStats after = memory_stats();
  CHECK(after.current_total == before.current_total);
  CHECK(after.peak_of(MemoryTag::optimizer) - before.current_of(MemoryTag::optimizer) == 6000);
  CHECK(after.peak_of(MemoryTag::comm) - before.current_of(MemoryTag::comm) == 4000);
  CHECK(after.peak_total - before.current_total == 6000);
  reset_peak_memory();
  CHECK(memory_stats().peak_total == memory_stats().current_total);
}

TEST_CASE("a GPU that nothing was asked of has taken no memory, and a negative number is none") {
  CHECK(memory_stats({DeviceType::cuda, 1000}).peak_total == 0);
  CHECK_THAT(error_of([] { memory_stats({DeviceType::cuda, -2}); }), ContainsText("memory_stats: there is no cuda:-2"));
}

TEST_CASE("views share one storage, counted once") {
  const std::int64_t before = memory_stats().current_total;
  const Tensor a = Tensor::zeros({16, 16});
  const Tensor view = a.narrow(0, 4, 8).transpose(0, 1);
  CHECK(memory_stats().current_total - before == 1024);
  CHECK(view.storage() == a.storage());
}

TEST_CASE("a tensor on somebody's memory writes there, keeps it, and is counted") {
  const auto before = memory_stats().current_of(MemoryTag::comm);
  const auto memory = std::make_shared<std::vector<float>>(6, 1.0f);
  const std::weak_ptr<std::vector<float>> owner = memory;
  {
    Tensor tensor =
        Tensor::on(std::make_shared<Storage>(memory->data(), 24, MemoryTag::comm, memory), {2, 3}, DType::f32);
    tensor.fill(7.0);
    CHECK(*memory == std::vector<float>(6, 7.0f));
    CHECK(memory_stats().current_of(MemoryTag::comm) - before == 24);
    CHECK(owner.use_count() == 2);
    CHECK_THAT(error_of([&] { Tensor::on(tensor.storage(), {7}, DType::f32); }),
               ContainsText("f32[7] does not fit into 24 bytes"));
  }
  CHECK(owner.use_count() == 1);
  CHECK(memory_stats().current_of(MemoryTag::comm) == before);
  CHECK_THAT(error_of([&] { const Storage ownerless(memory->data(), 24, MemoryTag::comm, nullptr); }),
             ContainsText("without an owner"));
}

TEST_CASE("tags belong to the thread that set them") {
  const MemoryTagScope scope(MemoryTag::data);
  MemoryTag seen = MemoryTag::data;
  std::thread([&] { seen = current_memory_tag(); }).join();
  CHECK(seen == MemoryTag::activations);
}

TEST_CASE("poisoned storages start as NaN") {
  const PoisonScope poison;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const double value : Tensor::empty({7}, {.dtype = dtype}).to_vector<double>()) CHECK(std::isnan(value));
  }
}

TEST_CASE("the allocator reuses large blocks and bounds its cache") {
  CpuAllocator allocator;
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  void* const first = allocator.allocate(8 * kMiB);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % kAlignment == 0);
  allocator.deallocate(first, 8 * kMiB);
  CHECK(allocator.cached_bytes() >= 8 * kMiB);
  void* const again = allocator.allocate(8 * kMiB - 100);
  CHECK(again == first);
  CHECK(allocator.cached_bytes() == 0);

  // A cached block is for sizes near its own: a small one in it would waste the rest.
  allocator.deallocate(again, 8 * kMiB - 100);
  void* const small = allocator.allocate(kMiB);
  CHECK(allocator.cached_bytes() >= 8 * kMiB);
  allocator.deallocate(small, kMiB);
  CHECK(allocator.allocate(8 * kMiB - 100) == first);

  // Sizes that never fit what is cached: live and cached together stay within the promise.
  allocator.deallocate(again, 8 * kMiB - 100);
  for (std::int64_t size = 9; size < 60; ++size) {
    void* const block = allocator.allocate(size * kMiB);
    CHECK(size * kMiB + allocator.cached_bytes() <= (size + 64) * kMiB);
    allocator.deallocate(block, size * kMiB);
  }
  allocator.release_cached();
  CHECK(allocator.cached_bytes() == 0);
}

TEST_CASE("small blocks are not cached, and impossible sizes are errors") {
  CpuAllocator allocator;
  void* const block = allocator.allocate(1);
  CHECK(reinterpret_cast<std::uintptr_t>(block) % kAlignment == 0);
  allocator.deallocate(block, 1);
  CHECK(allocator.cached_bytes() == 0);
  REQUIRE_THROWS_AS(allocator.allocate(0), Error);
  REQUIRE_THROWS_AS(allocator.allocate(std::int64_t{1} << 60), Error);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_CASE("AddressSanitizer knows which bytes are of live blocks") {
  CpuAllocator allocator;
  constexpr std::int64_t kBytes = 100'000;
  auto* const block = static_cast<std::byte*>(allocator.allocate(kBytes));
  CHECK_FALSE(__asan_address_is_poisoned(block));
  CHECK_FALSE(__asan_address_is_poisoned(block + kBytes - 1));
  CHECK(__asan_address_is_poisoned(block + kBytes));
  allocator.deallocate(block, kBytes);
  CHECK(__asan_address_is_poisoned(block));
  CHECK(__asan_address_is_poisoned(block + kBytes - 1));
}
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#error "sources know the sanitizer by __SANITIZE_ADDRESS__, which cmake/TandemOptions.cmake defines"
#endif
#endif

TEST_CASE("a device that this build lacks is an error that names it") {
  std::string text;
  try {
    Tensor::empty({2}, {.device = {DeviceType::cuda, 3}});
  } catch (const Error& error) {
    text = error.what();
  }
  CHECK_THAT(text, ContainsText("cuda:3"));
}

// Sanitizers hold locks of their own when they allocate.
#if defined(__linux__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("a process made by fork has memory, whatever other threads were allocating") {
  std::atomic<bool> stop = false;
  const auto allocate = [&] {
    while (!stop) Tensor::empty({20'000});  // of the cache
  };
  std::thread first(allocate), second(allocate);
  bool good = true;
  for (int i = 0; i < 30 && good; ++i) {
    const int code = exit_code_forked([] {
      const Tensor made = Tensor::zeros({20'000});
      return memory_stats().current_total >= 80'000 ? 0 : 1;
    });
    good = code == 0;
  }
  stop = true;
  first.join();
  second.join();
  CHECK(good);
}
#endif
