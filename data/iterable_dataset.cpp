// Streams of functions.
#include "tandem/data/iterable_dataset.h"

namespace tandem::data {

namespace {

class FunctionStream final : public IterableDataset {
 public:
  FunctionStream(std::function<NextExample(std::uint32_t)> start, std::optional<std::int64_t> size)
      : start_(std::move(start)), size_(size) {}

  void start(std::uint32_t epoch) override { next_ = start_(epoch); }
  std::optional<Example> next() override { return next_(); }
  std::optional<std::int64_t> size() const override { return size_; }

 private:
  std::function<NextExample(std::uint32_t)> start_;
  NextExample next_;
  std::optional<std::int64_t> size_;
};

}  // namespace

std::shared_ptr<IterableDataset> stream_of(std::function<NextExample(std::uint32_t epoch)> start,
                                           std::optional<std::int64_t> size) {
  require(start != nullptr, "stream_of: got an empty function; give one that begins an epoch");
  require(size.value_or(0) >= 0, "stream_of: the size must be 0 or more, or nothing where it is not known, got {}",
          size.value_or(0));
  return std::make_shared<FunctionStream>(std::move(start), size);
}

}  // namespace tandem::data
