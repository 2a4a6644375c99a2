// A loader's threads take pinned memory in the context of the loader's device.
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/simulator/runtime.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("threads of a loader set its device before they take pinned memory", "[cuda]") {
  if (!has_gpu()) return;
  const auto dataset =
      std::make_shared<const data::ImageDataset>(data::make_synthetic({.count = 40, .channels = 3, .side = 8}));
  const std::int64_t before = simulator::runtime_counts().default_contexts;
  data::Loader loader(dataset, data::DistributedSampler(40, 1, 0, true, 2),
                      {.global_batch_size = 10, .threads = 2, .device = kGpu});
  loader.start(0);
  int batches = 0;
  while (loader.next()) ++batches;
  CHECK(batches == 4);
  CHECK(simulator::runtime_counts().default_contexts == before);
}
