// Data sets made of functions.
#include "tandem/data/make_dataset.h"

#include "tandem/data/tensor_dataset.h"

#include <iterator>
#include <string_view>
#include <utility>

namespace tandem::data {

namespace {

class FunctionDataset final : public Dataset {
 public:
  /// `name`: of the function that makes it, for messages.
  FunctionDataset(std::string_view name, std::int64_t size, std::function<Example(std::int64_t)> get)
      : name_(name), size_(size), get_(std::move(get)) {}
  std::int64_t size() const override { return size_; }
  Example get(std::int64_t index) const override {
    require(index >= 0 && index < size_, "{}: there is no example {}, of {}; they are numbered from 0", name_, index,
            size_);
    return get_(index);
  }

 private:
  std::string_view name_;
  std::int64_t size_;
  std::function<Example(std::int64_t)> get_;
};

/// `numbers[index]`, or an Error.
std::int64_t number_of(const std::vector<std::int64_t>& numbers, std::int64_t index) {
  require(index >= 0 && index < std::ssize(numbers), "subset: there is no example {}, of {}; they are numbered from 0",
          index, numbers.size());
  return numbers[static_cast<std::size_t>(index)];
}

/// Some examples of a data set that makes whole batches.
class BatchSubset final : public BatchSource {
 public:
  BatchSubset(std::shared_ptr<const BatchSource> source, std::vector<std::int64_t> indices)
      : source_(std::move(source)), indices_(std::move(indices)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  void check_options(const BatchOptions& options) const override { source_->check_options(options); }
  Example get(std::int64_t index) const override { return source_->get(number_of(indices_, index)); }

  std::vector<Tensor> get_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                const BatchOptions& options) const override {
    return source_->get_batch(of_source(indices), epoch, options);
  }

  std::optional<ImagesToMake> defer_batch(std::span<const std::int64_t> indices, std::uint32_t epoch,
                                          const BatchOptions& options, std::vector<Tensor>& rest) const override {
    return source_->defer_batch(of_source(indices), epoch, options, rest);
  }

  std::shared_ptr<const BatchSource> resident_on(Device device) const override {
    auto there = source_->resident_on(device);
    return there == nullptr ? nullptr : std::make_shared<const BatchSubset>(std::move(there), indices_);
  }

 private:
  std::vector<std::int64_t> of_source(std::span<const std::int64_t> indices) const {
    std::vector<std::int64_t> numbers;
    for (const std::int64_t index : indices) numbers.push_back(number_of(indices_, index));
    return numbers;
  }

  std::shared_ptr<const BatchSource> source_;
  std::vector<std::int64_t> indices_;
};

}  // namespace

std::shared_ptr<const Dataset> dataset_of(std::int64_t size, std::function<Example(std::int64_t index)> get) {
  require(size >= 0, "dataset_of: the size must be 0 or more, got {}", size);
  require(get != nullptr, "dataset_of: got an empty function; give one that makes example i");
  return std::make_shared<const FunctionDataset>("dataset_of", size, std::move(get));
}

std::shared_ptr<const Dataset> dataset_of(std::vector<Tensor> tensors) {
  return std::make_shared<const TensorDataset>(std::move(tensors));
}

std::shared_ptr<const Dataset> transformed(std::shared_ptr<const Dataset> dataset,
                                           std::function<Example(Example example)> transform) {
  require(dataset != nullptr, "transformed: got no data set (a null pointer)");
  require(transform != nullptr, "transformed: got an empty function; give one that makes an example of another");
  const std::int64_t size = dataset->size();
  auto get = [dataset = std::move(dataset), transform = std::move(transform)](std::int64_t index) {
    return transform(dataset->get(index));
  };
  return std::make_shared<const FunctionDataset>("transformed", size, std::move(get));
}

std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices) {
  require(dataset != nullptr, "subset: got no data set (a null pointer)");
  const std::int64_t size = dataset->size();
  for (const std::int64_t index : indices)
    require(index >= 0 && index < size, "subset: there is no example {} in a data set of {}; they are numbered from 0",
            index, size);
  if (auto source = std::dynamic_pointer_cast<const BatchSource>(dataset))
    return std::make_shared<const BatchSubset>(std::move(source), std::move(indices));
  const auto count = static_cast<std::int64_t>(indices.size());
  auto get = [dataset = std::move(dataset), indices = std::move(indices)](std::int64_t index) {
    return dataset->get(number_of(indices, index));
  };
  return std::make_shared<const FunctionDataset>("subset", count, std::move(get));
}

}  // namespace tandem::data
