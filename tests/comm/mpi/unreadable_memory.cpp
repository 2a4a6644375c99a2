// Memory that the system lets no other process read, as that of some drivers.
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/skip.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <memory>

using namespace tandem;
using namespace tandem::comm;
using namespace tandem::test;

namespace {

/// Null where the system has none.
std::shared_ptr<void> secret_memory([[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(SYS_memfd_secret)
  const int file = static_cast<int>(syscall(SYS_memfd_secret, 0));
  if (file < 0) return nullptr;
  const bool has_size = ftruncate(file, static_cast<off_t>(bytes)) == 0;
  void* const memory = has_size ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory != MAP_FAILED) return {memory, [bytes](void* mapped) { munmap(mapped, bytes); }};
#endif
  return nullptr;
}

}  // namespace

TEST_CASE("data that other processes cannot read arrive all the same, also small ones beside large") {
  const auto group = make_process_group("native", environment());
  constexpr std::int64_t kFew = 1 << 13, kMany = 1 << 20;  // 32 KiB, 4 MiB
  const bool is_secret = group->rank() == 0;
  const std::int64_t rows = is_secret ? kFew : kMany;
  const std::shared_ptr<void> memory = secret_memory(static_cast<std::size_t>(kFew * 4));
  if (const Tensor all = group->all_gather(Tensor::full({1}, memory ? 1.0 : 0.0));
      all.to_vector<float>() != std::vector<float>(static_cast<std::size_t>(group->size()), 1.0f))
    return skip_test("this system has no secret memory");
  const Tensor mine = is_secret ? Tensor::on(std::make_shared<Storage>(memory.get(), kFew * 4, MemoryTag::data, memory),
                                             {rows}, DType::f32)
                                : Tensor::empty({rows});
  mine.fill(1.0 + group->rank());
  const std::vector<Tensor> all = group->all_gather_rows(mine);
  for (int rank = 0; rank < group->size(); ++rank) {
    const Tensor& theirs = all[static_cast<std::size_t>(rank)];
    CHECK(theirs.numel() == (rank == 0 ? kFew : kMany));
    CHECK(theirs.narrow(0, 0, 1).item() == 1.0 + rank);
    CHECK(theirs.narrow(0, theirs.numel() - 1, 1).item() == 1.0 + rank);
  }
}
