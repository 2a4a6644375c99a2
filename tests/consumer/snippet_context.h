// What fragments of pages use without saying where they have it from (scripts/check_snippets.py): the ranks, a small
// model, its optimizer, and a loader of images.
#pragma once

#include <tandem/tandem.h>

using namespace tandem;

using Snippet = void(comm::ProcessGroup& group, layers::Sequential& model, optim::Optimizer& optimizer,
                     data::Loader& loader, const data::ImageDataset& images);

/// Runs a fragment, whose place in a page is printed.
inline void run_snippet(const char* place, Snippet& snippet, comm::ProcessGroup& group) {
  fmt::print("{}\n", place);
  const data::ImageDataset images = data::make_synthetic({.count = 64});
  layers::Initializer initializer(1);
  layers::Sequential model;
  model.add<layers::Conv2d>({.in = 3, .out = 4, .kernel = 3, .stride = 2, .relu = true}, initializer);
  model.add<layers::Flatten>();
  model.add<layers::Linear>({.in = 4 * 15 * 15, .out = images.classes()}, initializer);
  optim::SGD optimizer(model.parameters(), {.lr = 0.01});
  data::Loader loader(images, {.global_batch_size = 16, .seed = 1});
  snippet(group, model, optimizer, loader, images);
}
