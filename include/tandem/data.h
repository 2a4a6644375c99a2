// data/: data sets, augmentation, sampling, loading.
// Example:
//     const ImageDataset images = make_synthetic({.count = 100});
//     Loader loader(images, {images.size(), 1, 0, true, 1}, {.global_batch_size = 10});
//     const std::int64_t batches = loader.batches();  // 10
#pragma once

#include "tandem/data/augment.h"
#include "tandem/data/batch.h"
#include "tandem/data/cifar.h"
#include "tandem/data/collate.h"
#include "tandem/data/dataset.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/data/encode_png.h"
#include "tandem/data/example_random.h"
#include "tandem/data/idx.h"
#include "tandem/data/image_dataset.h"
#include "tandem/data/image_folder.h"
#include "tandem/data/iterable_dataset.h"
#include "tandem/data/load.h"
#include "tandem/data/loader.h"
#include "tandem/data/make_dataset.h"
#include "tandem/data/mixing.h"
#include "tandem/data/prefetcher.h"
#include "tandem/data/read_image.h"
#include "tandem/data/sampler.h"
#include "tandem/data/stratified_split.h"
#include "tandem/data/synthetic.h"
#include "tandem/data/tensor_dataset.h"
