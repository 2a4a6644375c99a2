// Whether a loader can make batches by its options.
#pragma once

#include "tandem/data/loader.h"
#include "tandem/data/sampler.h"

namespace tandem::data {

/// What a loader makes batches of.
struct LoaderInput {
  const DistributedSampler& sampler;
  bool has_size = true;        ///< false: a stream that does not tell how many examples it has
  bool is_images = false;      ///< as bytes: a BatchSource
  bool makes_batches = false;  ///< is asked for whole batches: images without a transform or a collate function
};

/// Throws Error, naming what to give instead, for options that make no sense or do not fit the input.
void check_options(const LoaderOptions& options, const LoaderInput& input);

}  // namespace tandem::data
