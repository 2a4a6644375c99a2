// Stacking examples.
#include "tandem/data/collate.h"

#include "tandem/core/describe.h"

#include <string>

namespace tandem::data {

namespace {

/// "f32[3, 8, 8], i64[]"
std::string describe_example(const Example& example) {
  std::string text;
  for (const Tensor& tensor : example) text += (text.empty() ? "" : ", ") + describe(tensor);
  return text.empty() ? "no tensor" : text;
}

bool are_alike(const Example& a, const Example& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].shape() != b[i].shape() || a[i].dtype() != b[i].dtype()) return false;
  return true;
}

void check_examples(std::span<const Example> examples, std::span<const std::int64_t> indices) {
  require(!examples.empty(), "collate: got no examples; give one or more");
  const auto number_of = [&](std::size_t place) {
    return indices.empty() ? static_cast<std::int64_t>(place) : indices[place];
  };
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const Example& example = examples[i];
    require(!example.empty(), "collate: example {} has no tensor; give one or more", number_of(i));
    for (const Tensor& tensor : example) {
      require(tensor.defined(), "collate: example {} has an undefined tensor: {}", number_of(i),
              describe_example(example));
      require(tensor.device() == Device{},
              "collate: example {} is on {}, and examples are made on the CPU; "
              "LoaderOptions::device is where their batches go",
              number_of(i), tensor.device());
    }
    require(
        are_alike(example, examples[0]),
        "collate: examples {} and {} cannot be stacked: {} and {}; make them alike by a transform, or give a collate "
        "function",
        number_of(0), number_of(i), describe_example(examples[0]), describe_example(example));
  }
}

}  // namespace

std::vector<Tensor> default_collate(std::span<const Example> examples, std::span<const std::int64_t> indices,
                                    bool pinned) {
  check_examples(examples, indices);
  std::vector<Tensor> batch;
  for (std::size_t place = 0; place < examples[0].size(); ++place) {
    const Tensor& first = examples[0][place];
    require(
        first.rank() < kMaxRank,
        "collate: example {} is {}, and a batch of these would have more than {} dimensions; give a collate function",
        indices.empty() ? 0 : indices[0], first, kMaxRank);
    Shape shape{static_cast<std::int64_t>(examples.size())};
    for (const std::int64_t size : first.shape()) shape.push_back(size);
    batch.push_back(Tensor::empty(shape, {.dtype = first.dtype(), .layout = Layout::channels_last, .pinned = pinned}));
    for (std::size_t i = 0; i < examples.size(); ++i)
      batch.back().select(0, static_cast<std::int64_t>(i)).copy_from(examples[i][place].detach());
  }
  return batch;
}

}  // namespace tandem::data
