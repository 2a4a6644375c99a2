// data/: data sets of images, augmentation, sampling, loading.
// Example:
//     const auto images = std::make_shared<const Dataset>(make_synthetic({.count = 100}));
//     Loader loader(images, {images->size(), 1, 0, true, 1}, {.global_batch_size = 10});
//     const std::int64_t batches = loader.batches();  // 10
#pragma once

#include "tandem/data/augment.h"
#include "tandem/data/cifar.h"
#include "tandem/data/dataset.h"
#include "tandem/data/idx.h"
#include "tandem/data/load.h"
#include "tandem/data/loader.h"
#include "tandem/data/prefetcher.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
