// What conv_bench is asked for.
#pragma once

#include "apps/conv_bench/contestants.h"
#include "apps/conv_bench/floor.h"
#include "apps/conv_bench/timing.h"

namespace tandem::conv_bench {

/// A layer with the batch sizes that it is timed at.
struct TimedLayer {
  BenchLayer layer;
  std::vector<std::int64_t> batches;
};

struct BenchSettings {
  std::vector<TimedLayer> layers;
  std::vector<Pass> passes;
  std::vector<DType> dtypes;
  std::vector<Cache> caches;
  std::vector<Contestant> contestants;  // none is kept from the device by an obstacle
  std::vector<std::string> missing;     // of those asked for, who is, and why
  Device device{};
  Protocol protocol;
  Ceilings ceilings;
  bool serve = false, count = false;
  bool autotune = false;
  std::string json_file, svg_file;  // empty: none
};

}  // namespace tandem::conv_bench
