// Quotas by largest remainder, and a shuffle for each class.
#include "tandem/data/stratified_split.h"

#include "tandem/core/out.h"
#include "tandem/core/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

namespace tandem::data {
namespace {

/// The examples of a class, and how many of them are held out.
struct Stratum {
  std::vector<std::int64_t> examples;
  std::int64_t quota = 0;
  double remainder = 0.0;
};

void set_quotas(std::vector<Stratum*> strata, double fraction, std::int64_t total) {
  std::int64_t given = 0;
  for (Stratum* stratum : strata) {
    const double share = fraction * static_cast<double>(stratum->examples.size());
    stratum->quota = static_cast<std::int64_t>(share);
    stratum->remainder = share - static_cast<double>(stratum->quota);
    given += stratum->quota;
  }
  std::stable_sort(strata.begin(), strata.end(),
                   [](const Stratum* a, const Stratum* b) { return a->remainder > b->remainder; });
  for (Stratum* stratum : strata) {
    if (given >= total) break;
    ++stratum->quota;
    ++given;
  }
}

}  // namespace

StratifiedSplit stratified_split(std::span<const std::int64_t> labels, double fraction, std::uint64_t seed) {
  require(fraction > 0.0 && fraction < 1.0, "stratified_split: the fraction must be between 0 and 1, got {}", fraction);
  const auto count = static_cast<std::int64_t>(labels.size());
  require(count <= std::numeric_limits<std::uint32_t>::max(),
          "stratified_split: cannot split {} examples, only up to {}", count,
          std::numeric_limits<std::uint32_t>::max());
  const auto total = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(count)));
  require(total > 0 && total < count,
          "stratified_split: {} of {} examples would leave {} and hold out {}: both need one; choose another fraction",
          fraction, count, count - total, total);
  std::map<std::int64_t, Stratum> classes;
  for (std::int64_t i = 0; i < count; ++i) classes[labels[static_cast<std::size_t>(i)]].examples.push_back(i);
  std::vector<Stratum*> strata;
  for (auto& [label, stratum] : classes) strata.push_back(&stratum);
  set_quotas(strata, fraction, total);
  StratifiedSplit split;
  const RandomKey key{seed, RandomStream::split};
  std::uint64_t draws = 0;  // of all classes
  for (Stratum* stratum : strata) {
    std::vector<std::int64_t>& examples = stratum->examples;
    // Fisher-Yates, from the back.
    for (std::size_t i = examples.size(); i > 1; --i)
      std::swap(examples[i - 1], examples[key.below(draws++, static_cast<std::uint32_t>(i))]);
    const auto end = examples.begin() + static_cast<std::ptrdiff_t>(stratum->quota);
    split.held_out.insert(split.held_out.end(), examples.begin(), end);
    split.kept.insert(split.kept.end(), end, examples.end());
  }
  std::sort(split.held_out.begin(), split.held_out.end());
  std::sort(split.kept.begin(), split.kept.end());
  return split;
}

ImageDataset subset(const ImageDataset& images, std::span<const std::int64_t> numbers) {
  check(images);
  for (const std::int64_t number : numbers)
    require(number >= 0 && number < images.size(), "subset: image {} is not one of the {} of data set '{}'", number,
            images.size(), images.name);
  const MemoryTagScope tag(MemoryTag::data);
  const auto count = static_cast<std::int64_t>(numbers.size());
  ImageDataset part = images;
  part.images = Tensor::empty({count, images.channels(), images.height(), images.width()}, {.dtype = DType::u8});
  part.labels = Tensor::empty({count}, {.dtype = DType::i64});
  const auto bytes = static_cast<std::size_t>(images.channels() * images.height() * images.width());
  const auto* from = images.images.data<std::uint8_t>();
  const auto* labels = images.labels.data<std::int64_t>();
  auto* to = Out(part.images).data<std::uint8_t>();
  auto* part_labels = Out(part.labels).data<std::int64_t>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<std::size_t>(numbers[i]);
    std::memcpy(to + i * bytes, from + number * bytes, bytes);
    part_labels[i] = labels[number];
  }
  return part;
}

}  // namespace tandem::data
