// Host memory may be changed or freed as soon as a copy from it has returned, however late the stream carries it out.
#include "tandem/core/tensor.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("pageable memory that was copied to a device is the caller's again", "[cuda]") {
  if (!has_gpu()) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  // Small ones, and one that is more than is put into pinned memory first.
  for (const std::int64_t count : {1, 1000, 100'000, 3'000'000}) {
    INFO(count << " floats");
    const Tensor there = Tensor::zeros({count}, {.device = kGpu}), again = Tensor::zeros({count}, {.device = kGpu});
    const Tensor here = Tensor::full({count}, 3.0);
    there.copy_from(here);
    here.fill(-1.0);
    again.copy_from_async(here);
    here.fill(-2.0);
    CHECK(there.narrow(0, count - 1, 1).item() == 3.0);
    CHECK(again.narrow(0, count - 1, 1).item() == -1.0);

    Tensor freed;
    {
      const Tensor gone = Tensor::full({count}, 5.0);
      freed = gone.to(kGpu);
      gone.fill(0.0);
    }
    CHECK(freed.narrow(0, count - 1, 1).item() == 5.0);
  }
  // The same where elements are put in order on the way.
  const Tensor square = Tensor::full({64, 64}, 2.0), transposed = Tensor::zeros({64, 64}, {.device = kGpu});
  transposed.copy_from(square.transpose(0, 1));
  square.fill(9.0);
  CHECK(transposed.to_vector<float>() == std::vector<float>(64 * 64, 2.0F));
}
